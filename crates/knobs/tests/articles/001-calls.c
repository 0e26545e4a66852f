SetSocketRxBuffers(fd, 20);
SetOutOfOrderBuffers(fd, 19);
SetSocketTxBuffers(fd, 20);
SetSocketUnackBuffers(fd, 20);
setsockoption(fd, SO_NONAGLE);  
clrsockoption(fd, SO_NOPUSH);
