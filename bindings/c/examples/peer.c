/* The kernel's side of transfer.c: a process with ordinary sockets. It is a file of its own because NetBurner's names and the
 * C library's are the same. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (4 << 20)

static pid_t child;

static struct sockaddr_in address_of(const char *text, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, text, &address.sin_addr);
    return address;
}

/* Takes 4 MB and sends them back. */
static int echo(int listener) {
    static char data[SIZE];
    int fd = accept(listener, 0, 0);
    for (int done = 0; done < SIZE;) {
        ssize_t len = read(fd, data + done, SIZE - done);
        if (len <= 0) return 1;
        done += (int)len;
    }
    for (int done = 0; done < SIZE;) {
        ssize_t len = write(fd, data + done, SIZE - done);
        if (len <= 0) return 2;
        done += (int)len;
    }
    close(fd);
    return 0;
}

/* Connects, asks, and is answered. */
static int ask(void) {
    struct sockaddr_in address = address_of("10.83.0.2", 5002);
    char answer[4];
    for (int attempt = 0; attempt < 400; attempt++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
            if (write(fd, "ping", 4) != 4) return 3;
            ssize_t len = 0;
            while (len < 4) {
                ssize_t more = read(fd, answer + len, 4 - len);
                if (more <= 0) return 4;
                len += more;
            }
            close(fd);
            return memcmp(answer, "ping", 4) != 0;
        }
        close(fd);
        usleep(50000);
    }
    return 5;
}

/* Connects, and then nothing of this side reaches the stack any more: a peer that lost its power. */
static int vanish(void) {
    struct sockaddr_in address = address_of("10.83.0.2", 5003);
    for (int attempt = 0; attempt < 400; attempt++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return system("ip route add blackhole 10.83.0.2/32") != 0 ? 6 : 0;
        close(fd);
        usleep(50000);
    }
    return 7;
}

int start_peer(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = address_of("0.0.0.0", 5001);
    if (bind(listener, (struct sockaddr *)&any, sizeof any) != 0 || listen(listener, 1) != 0) return 1;
    child = fork();
    if (child == 0) {
        int code = echo(listener);
        if (code == 0) code = ask();
        _exit(code != 0 ? code : vanish());
    }
    close(listener);
    return child < 0;
}

int end_peer(void) {
    int status = 1;
    waitpid(child, &status, 0);
    return status;
}
