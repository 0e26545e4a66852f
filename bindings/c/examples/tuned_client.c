/* A client that always fixed its buffers at 64 KB, with the lines that mend it, and a server to talk to.
 *
 *     tuned_client                  both ends in this process, over loopback
 *     tuned_client ADDRESS PORT     connects there, says what was decided, and leaves
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fullpipe_socket.h"

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

/* Takes a connection that only looks, then one that stays. */
static void *serve(void *listener) {
    for (int connections = 0; connections < 2; connections++) {
        int fd = accept(*(int *)listener, NULL, NULL);
        check(fd >= 0, "accept");
        char byte;
        while (read(fd, &byte, 1) > 0) {
        }
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *name = argc > 2 ? argv[1] : "127.0.0.1";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argc > 2 ? argv[2] : "0"))};
    check(inet_pton(AF_INET, name, &address.sin_addr) == 1, "address");
    pthread_t server;
    int listener = -1;
    if (argc <= 2) {
        socklen_t size = sizeof address;
        listener = socket(AF_INET, SOCK_STREAM, 0);
        check(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
        check(listen(listener, 4) == 0, "listen");
        check(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
        check(pthread_create(&server, NULL, serve, &listener) == 0, "pthread_create");
    }

    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int small = 65536;
    check(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0, "SO_RCVBUF");
    check(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0, "SO_SNDBUF");

    struct fullpipe_path path;
    struct fullpipe_wish wish = {.rate_bps = 10000000000};
    fullpipe_tuned *tuned = NULL;
    check(fullpipe_path_to(name, ntohs(address.sin_port), 3000, &path) == 0, "fullpipe_path_to");
    /* What loopback can't show: the same as far away as another continent. */
    path.rtt_us = argc > 2 ? path.rtt_us : 10000;
    check(fullpipe_tune(fd, &path, &wish, &tuned) == 0, "fullpipe_tune");

    struct fullpipe_sizes before;
    check(fullpipe_sizes(tuned, &before) == 0, "fullpipe_sizes");
    char text[1024];
    fullpipe_explain(tuned, text, sizeof text);
    puts(text);

    check(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "connect");
    check(fullpipe_look_again(tuned, fd) == 0, "fullpipe_look_again");
    check(fullpipe_path_of(fd, &path) == 0, "fullpipe_path_of");
    printf("connected: MTU %u, round trip %llu us, scaling %d; receive decision %d, send decision %d\n", path.mtu,
           (unsigned long long)path.rtt_us, path.scaling, before.receive.decision, before.send.decision);
    fullpipe_tuned_free(tuned);
    close(fd);
    if (argc <= 2) {
        pthread_join(server, NULL);
        close(listener);
    }
    /* Nobody's socket, and nobody's place for a result. */
    return fullpipe_tune(-1, NULL, &wish, &tuned) < 0 && fullpipe_path_of(0, NULL) < 0 ? 0 : 1;
}
