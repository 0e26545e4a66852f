/* fullpipe: buffers of one socket that fit its path. Linux, Windows, FreeBSD, macOS.
 *
 * A program that fixes its buffers at 64 KB gets 64 KB in each round trip, whatever the path carries. Three calls mend
 * that:
 *
 *     struct fullpipe_path path;
 *     struct fullpipe_wish wish = {.rate_bps = 100000000};
 *     fullpipe_tuned *tuned = NULL;
 *     if (fullpipe_path_to("192.0.2.1", 5201, 3000, &path) == 0)
 *         fullpipe_tune(fd, &path, &wish, &tuned);
 *     connect(fd, ...);
 *     fullpipe_look_again(tuned, fd);     (and now and then, while the connection lives)
 *
 * Buffers that the system sizes by itself far enough are left alone, buffers that an earlier call fixed are given back
 * to it where it allows that (Linux 5.16), and the rest is set; `fullpipe_explain` says what was done and why.
 *
 * Link libfullpipe.a (cargo build --release --package fullpipe-c), then on Linux -lpthread -ldl -lm, on FreeBSD and macOS
 * -lpthread -lm, on Windows fullpipe.lib or libfullpipe.a with ws2_32, userenv and ntdll.
 *
 * Calls return 0, or the system's error number (errno, WSAGetLastError) negated, or -1 where there is none. None of them
 * closes or connects your socket. A fullpipe_tuned is used by one thread at a time.
 */
#ifndef FULLPIPE_SOCKET_H
#define FULLPIPE_SOCKET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef _WIN32
typedef uintptr_t fullpipe_socket; /* a SOCKET */
#else
typedef int fullpipe_socket;
#endif

/* What is known of a path. 0: not known. */
struct fullpipe_path {
    uint64_t rtt_us;
    uint32_t mtu;
    uint32_t mss;
    int scaling; /* whether both ends scale their windows: 1, 0, or -1 where nobody tells */
};

/* What you want. All zero: as fast as the path allows, found out by the system or from what passes. */
struct fullpipe_wish {
    uint64_t rate_bps; /* what the path carries, in bits per second; 0: not known */
    int interactive;   /* short queues: buffers that fill the path and no more */
    int fixed;         /* never left to automatic sizing */
};

#define FULLPIPE_AUTOMATIC 0 /* left to the system, which reaches `bytes` */
#define FULLPIPE_RELEASED 1  /* had been fixed, and was given back to the system, which reaches `bytes` */
#define FULLPIPE_FIXED 2     /* fixed at `bytes` */
#define FULLPIPE_UNCHANGED 3 /* left at `bytes` */

struct fullpipe_buffer {
    int decision;    /* FULLPIPE_ and so on */
    uint64_t bytes;  /* as the system counts them (Linux: twice what setsockopt is given); 0: not known */
    uint64_t wanted; /* what the path needs where a limit of the system stands in the way, else 0 */
};

struct fullpipe_sizes {
    struct fullpipe_buffer receive;
    struct fullpipe_buffer send;
    struct fullpipe_path path;
    uint64_t unscaled_window;   /* 65535 where a SYN lacked the window-scale option; the window that holds the sender where it looks so (Windows); else 0 */
    uint64_t unscaled_rate_bps; /* the rate that it allows, 0 where the round-trip time is not known */
};

typedef struct fullpipe_tuned fullpipe_tuned;

/* Connects to an IPv4 or IPv6 address in text, asks the kernel about that connection, and closes it. */
int fullpipe_path_to(const char *address, uint16_t port, uint32_t patience_ms, struct fullpipe_path *path);
/* The same of a connection that there is. */
int fullpipe_path_of(fullpipe_socket socket, struct fullpipe_path *path);

/* Sizes a socket that is not connected and does not listen yet, for `path`; without a path (NULL) one that is connected.
 * `wish` may be NULL. `*tuned` is to be freed. */
int fullpipe_tune(fullpipe_socket socket, const struct fullpipe_path *path, const struct fullpipe_wish *wish,
                  fullpipe_tuned **tuned);
/* Looks at the connection again, and sizes it anew where its buffers don't fit any more. Costs a few system calls. */
int fullpipe_look_again(fullpipe_tuned *tuned, fullpipe_socket socket);

int fullpipe_sizes(const fullpipe_tuned *tuned, struct fullpipe_sizes *sizes);
/* Lines of text, cut to `size` bytes with the zero at the end; returns the length of all of it. */
size_t fullpipe_explain(const fullpipe_tuned *tuned, char *text, size_t size);
/* The socket stays as it is. NULL is fine. */
void fullpipe_tuned_free(fullpipe_tuned *tuned);

#ifdef __cplusplus
}
#endif

#endif
