/* 4 MB to the kernel's TCP and back, in calls as code for a NetBurner makes them. `peer.c` is the kernel's side. */

#include <stdio.h>

#define FULLPIPE_NETBURNER_NAMES
#include "fullpipe.h"

int start_peer(void); /* in peer.c */
int end_peer(void);

#define SIZE (4 << 20)

static unsigned char pattern(unsigned at) { return (unsigned char)((at * 2654435761u) >> 24); }

static char buffer[3 * 1460];

static int fail(const char *what, int code) {
    fprintf(stderr, "%s: %d\n", what, code);
    return 1;
}

/* Sends the pattern through `fd`. */
static int send_all(int fd) {
    for (unsigned sent = 0; sent < SIZE;) {
        int len = 0;
        while (len < (int)sizeof buffer && sent + len < SIZE) {
            buffer[len] = (char)pattern(sent + len);
            len++;
        }
        int written = writeall(fd, buffer, len);
        if (written != len) return fail("writeall", written);
        sent += len;
    }
    return 0;
}

/* Receives it. */
static int receive_all(int fd) {
    for (unsigned received = 0; received < SIZE;) {
        int len = ReadWithTimeout(fd, buffer, sizeof buffer, 60 * TICKS_PER_SECOND);
        if (len <= 0) return fail("read", len);
        for (int at = 0; at < len; at++, received++)
            if ((unsigned char)buffer[at] != pattern(received)) return fail("a wrong byte", (int)received);
    }
    return 0;
}

/* With any argument the device carries Ethernet frames. */
int main(int argc, char **argv) {
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 2};
    (void)argv;
    if (start_peer() != 0) return fail("the peer", 0);
    int code = argc > 1 ? fullpipe_start_ethernet("fpc0", mac, "10.83.0.2", "10.83.0.1", 24)
                        : fullpipe_start("fpc0", "10.83.0.2", "10.83.0.1", 24);
    if (code != 0) return fail("fullpipe_start", code);
    uint16_t all = GetFreeCount();

    /* Active: the kernel listens, takes everything and sends it back. */
    int fd = connect(AsciiToIp("10.83.0.1"), 0, 5001, 20 * TICKS_PER_SECOND);
    if (fd < 0) return fail("connect", fd);
    SetSocketRxBuffers(fd, 20);
    SetSocketTxBuffers(fd, 20);
    SetOutOfOrderBuffers(fd, 20);
    SetSocketUnackBuffers(fd, 20);
    setsocketackbuffers(fd, 20);
    setsockoption(fd, SO_NOPUSH);
    if (getsockoption(fd) != SO_NOPUSH) return fail("getsockoption", getsockoption(fd));
    if (SetSocketRxBuffers(fd, 44) != TCP_ERR_NONE_AVAIL) return fail("44 buffers", 0);
    if (send_all(fd) != 0) return 1;
    clrsockoption(fd, SO_NOPUSH);
    if (receive_all(fd) != 0) return 1;
    close(fd);
    if (close(fd) != TCP_ERR_NOSUCH_SOCKET) return fail("close twice", 0);

    /* Passive: the kernel connects and asks. */
    int listener = listen(0, 5002, 5);
    IPADDR address = 0;
    uint16_t port = 0;
    fd = accept(listener, &address, &port, 20 * TICKS_PER_SECOND);
    if (fd < 0 || address != AsciiToIp("10.83.0.1") || port == 0) return fail("accept", fd);
    setsockoption(fd, SO_NONAGLE);
    int len = read(fd, buffer, sizeof buffer);
    if (len != 4) return fail("read", len);
    len = write(fd, buffer, len);
    if (len != 4) return fail("write", len);
    if (read(fd, buffer, sizeof buffer) != 0) return fail("the end", 0);
    close(fd);
    close(listener);

    /* A peer that vanishes: keepalive ends the connection, and its buffers come back. */
    listener = listen(0, 5003, 5);
    if (fullpipe_set_user_timeout(listener, 60 * TICKS_PER_SECOND) != 0) return fail("the user timeout", 0);
    if (fullpipe_set_keepalive(listener, TICKS_PER_SECOND, TICKS_PER_SECOND, 0) != TCP_ERR_NONE_AVAIL)
        return fail("keepalive without probes", 0);
    if (fullpipe_set_keepalive(listener, TICKS_PER_SECOND, TICKS_PER_SECOND, 2) != 0) return fail("keepalive", 0);
    fd = accept(listener, 0, 0, 20 * TICKS_PER_SECOND);
    if (fd < 0) return fail("accept", fd);
    len = read(fd, buffer, sizeof buffer);
    if (len != TCP_ERR_TIMEOUT) return fail("read from a dead peer", len);
    close(fd);
    close(listener);
    if (fullpipe_set_user_timeout(fd, 0) != TCP_ERR_NOSUCH_SOCKET) return fail("a closed socket", 0);

    if (end_peer() != 0) return fail("the peer", 1);
    for (int wait = 0; GetFreeCount() != all && wait < 1000; wait++) fullpipe_accept(-1, 0, 0, 1);
    printf("%d bytes each way, %u of %u buffers free\n", SIZE, (unsigned)GetFreeCount(), (unsigned)all);
    fullpipe_stop(10 * TICKS_PER_SECOND);
    return 0;
}
