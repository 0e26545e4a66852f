/* fullpipe: a TCP/IP stack of its own on a TUN device, with the calls of NetBurner's TCP library.
 *
 * Link libfullpipe.a (cargo build --release --package fullpipe-c), then -lpthread -ldl -lm. Linux only; making a TUN
 * device takes CAP_NET_ADMIN.
 *
 * NetBurner's names for these calls are `write`, `read`, `close`, `connect`, `accept` and `listen`, which the C library
 * has already, with other meanings. So every symbol here begins with `fullpipe_`. A source file written for NetBurner
 * defines FULLPIPE_NETBURNER_NAMES and includes this header behind all system headers: macros then give the calls their
 * NetBurner names in that file, and only there. They take arguments, so that a variable called `read` stays one; in C++
 * a method called so does not, and the file has to say `(object.read)(...)` or use the names below. A file that uses
 * sockets of the operating system too leaves the macro undefined and uses the names below.
 *
 * What is not known from public documents is marked "unverified": names that newer documents use, and what `read` returns
 * at the end of the peer's data.
 */
#ifndef FULLPIPE_H
#define FULLPIPE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An IPv4 address as a number: 192.0.2.1 is 0xC0000201. */
typedef uint32_t IPADDR;

/* Times are in ticks. */
#ifndef TICKS_PER_SECOND
#define TICKS_PER_SECOND 20
#endif

/* What calls return besides numbers of bytes and sockets. */
#define TCP_ERR_NORMAL 0
#define TCP_ERR_TIMEOUT (-1)
#define TCP_ERR_NOCON (-2)
#define TCP_ERR_CLOSING (-3)
#define TCP_ERR_NOSUCH_SOCKET (-4)
#define TCP_ERR_NONE_AVAIL (-5)
#define TCP_ERR_CON_RESET (-6)
#define TCP_ERR_CON_ABORT (-7)

/* Options, as bits. <sys/socket.h> has the same SO_DEBUG. */
#ifndef SO_DEBUG
#define SO_DEBUG 1
#endif
#define SO_NONAGLE 2 /* small segments leave at once */
#define SO_NOPUSH 4  /* no PSH, and partial segments wait for more data, 200 ms at most */

/* Starts the stack at address `own` on the TUN device `device`, which is made if it isn't there; its other side gets the
 * address `kernel` with `prefix` bits. The addresses are text. Returns 0 or a TCP_ERR_; why goes to standard error. */
int fullpipe_start(const char *device, const char *own, const char *kernel, int prefix);
/* The same on the TAP device `device`, which carries Ethernet frames: the stack is the station `mac` (6 bytes, a single
 * station's), finds its neighbours by ARP, and sends what is beyond the prefix to the kernel. */
int fullpipe_start_ethernet(const char *device, const uint8_t *mac, const char *own, const char *kernel, int prefix);
/* Waits until what was written has arrived, at most for `ticks`, and stops. All sockets are gone. */
void fullpipe_stop(uint32_t ticks);

IPADDR fullpipe_ascii_to_ip(const char *text); /* 0 for what is no address */

/* A socket, or a TCP_ERR_. `local_port` is 0: the stack chooses one at random. `timeout_ticks` 0: the stack's own, 75 s. */
int fullpipe_connect(IPADDR address, uint16_t local_port, uint16_t remote_port, uint32_t timeout_ticks);
/* `address` 0: all. */
int fullpipe_listen(IPADDR address, uint16_t port, uint8_t max_pending);
/* `address` and `port` may be null. `timeout_ticks` 0: for ever. */
int fullpipe_accept(int listener, IPADDR *address, uint16_t *port, uint16_t timeout_ticks);
/* At least one byte, for ever; 0 at the end of the peer's data (unverified). */
int fullpipe_read(int fd, char *buffer, int size);
int fullpipe_read_with_timeout(int fd, char *buffer, int size, uint32_t timeout_ticks);
/* What there is room for, at least one byte, within 10 s. */
int fullpipe_write(int fd, const char *data, int size);
/* All of it. */
int fullpipe_writeall(int fd, const char *data, int size);
int fullpipe_close(int fd);

int fullpipe_setsockoption(int fd, int options);
int fullpipe_clrsockoption(int fd, int options);
int fullpipe_getsockoption(int fd);

/* Buffers of a socket, 5 to 43. On a listener: those of the connections that it accepts from then on. */
int fullpipe_set_rx_buffers(int fd, int buffers);
int fullpipe_set_tx_buffers(int fd, int buffers);
int fullpipe_set_out_of_order_buffers(int fd, int buffers);
int fullpipe_set_unack_buffers(int fd, int buffers);

/* Dead peers give their buffers back. What was written and is not acknowledged for so long ends the connection: reading
 * and writing then return TCP_ERR_TIMEOUT. 0, the default: after the profile's retransmissions, which can take minutes. */
int fullpipe_set_user_timeout(int fd, uint32_t ticks);
/* A peer that is silent for `idle_ticks` is probed every `interval_ticks`, and given up after `probes` without an answer.
 * Counted in whole seconds, rounded up. `idle_ticks` 0, the default: never. Both calls on a listener: for the connections
 * that it accepts from then on. */
int fullpipe_set_keepalive(int fd, uint32_t idle_ticks, uint32_t interval_ticks, uint8_t probes);

/* Free packet buffers of the pool, 256 when nothing is held. */
uint16_t fullpipe_free_count(void);

#ifdef __cplusplus
}
#endif

#ifdef FULLPIPE_NETBURNER_NAMES
#define AsciiToIp(text) fullpipe_ascii_to_ip(text)
#define connect(address, local_port, remote_port, timeout) fullpipe_connect(address, local_port, remote_port, timeout)
#define listen(address, port, max_pending) fullpipe_listen(address, port, max_pending)
#define accept(listener, address, port, timeout) fullpipe_accept(listener, address, port, timeout)
#define read(fd, buffer, size) fullpipe_read(fd, buffer, size)
#define ReadWithTimeout(fd, buffer, size, timeout) fullpipe_read_with_timeout(fd, buffer, size, timeout)
#define write(fd, data, size) fullpipe_write(fd, data, size)
#define writeall(fd, data, size) fullpipe_writeall(fd, data, size)
#define close(fd) fullpipe_close(fd)
#define setsockoption(fd, options) fullpipe_setsockoption(fd, options)
#define clrsockoption(fd, options) fullpipe_clrsockoption(fd, options)
#define getsockoption(fd) fullpipe_getsockoption(fd)
#define SetSocketRxBuffers(fd, buffers) fullpipe_set_rx_buffers(fd, buffers)
#define SetSocketTxBuffers(fd, buffers) fullpipe_set_tx_buffers(fd, buffers)
/* Unverified names; the second is the one that public examples use. */
#define SetOutOfOrderBuffers(fd, buffers) fullpipe_set_out_of_order_buffers(fd, buffers)
#define SetSocketUnackBuffers(fd, buffers) fullpipe_set_unack_buffers(fd, buffers)
#define setsocketackbuffers(fd, buffers) fullpipe_set_unack_buffers(fd, buffers)
#define GetFreeCount() fullpipe_free_count()
#endif

#endif
