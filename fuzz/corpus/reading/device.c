device.c
#include <predef.h>
#include <tcp.h>

#define RX_BUFFERS (20)
#define BUFFER_POOL_SIZE 256

/* SetSocketRxBuffers(fd, 99) is what the old program did. */
void SendAll(int fd, int wanted)
{
    const char *text = "SetSocketTxBuffers(fd, 98)";
    SetSocketRxBuffers(fd, RX_BUFFERS);
    SetSocketTxBuffers(Socket(fd, 1), 0x14); // 20
    setsocketackbuffers(fd, wanted);
    setsockoption(fd, SO_NOPUSH | SO_NONAGLE);
    clrsockoption(fd, SO_NOPUSH);
}
