/* A stand-in for iphlpapi.dll with two connections whose statistics are known, for a Wine, which has no ESTATS. The
 * structures come from mingw-w64's headers, so that what fullpipe reads is laid out by another hand than its own. It shows
 * that the calls are made and read as Microsoft documents them, not how a Windows counts. Not part of the product: only
 * tests load it.
 *
 * Each call that switches a group adds a line to estats.txt in the current folder; where denied.txt is there, it refuses
 * as Windows does for who is no administrator. */
#define _WIN32_WINNT 0x0600
#include <winsock2.h>
#include <ws2tcpip.h>
#include <iphlpapi.h>
#include <stdio.h>
#include <string.h>

/* In network byte order; ws2_32.dll, which has htons, needs the real iphlpapi.dll. */
#define PORT(number) ((number) >> 8 | ((number) & 255) << 8)

static unsigned char on[2][TcpConnectionEstatsMaximum];

static ULONG give(void *to, DWORD *size, const void *table, DWORD needed)
{
    if (*size < needed) {
        *size = needed;
        return ERROR_INSUFFICIENT_BUFFER;
    }
    memcpy(to, table, needed);
    return NO_ERROR;
}

__declspec(dllexport) DWORD WINAPI GetExtendedTcpTable(
    PVOID to, PDWORD size, WINBOOL order, ULONG family, TCP_TABLE_CLASS class, ULONG reserved)
{
    (void)order, (void)reserved;
    if (class != TCP_TABLE_OWNER_PID_CONNECTIONS)
        return ERROR_INVALID_PARAMETER;
    if (family == AF_INET) {
        struct { DWORD count; MIB_TCPROW_OWNER_PID rows[2]; } table = { 2, { { 0 } } };
        MIB_TCPROW_OWNER_PID row = { MIB_TCP_STATE_ESTAB, 0x010200c0, PORT(5201), 0x076433c6, PORT(49152), 4711 };
        table.rows[0] = row;
        table.rows[1] = row;
        table.rows[1].dwState = MIB_TCP_STATE_TIME_WAIT;
        return give(to, size, &table, sizeof table);
    }
    struct { DWORD count; MIB_TCP6ROW_OWNER_PID rows[1]; } table = { 1, { { { 0 } } } };
    MIB_TCP6ROW_OWNER_PID *row = table.rows;
    const unsigned char local[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 }, remote[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 };
    memcpy(row->ucLocalAddr, local, 16);
    memcpy(row->ucRemoteAddr, remote, 16);
    row->dwLocalPort = PORT(443);
    row->dwRemotePort = PORT(50000);
    row->dwState = MIB_TCP_STATE_ESTAB;
    row->dwOwningPid = 4712;
    return give(to, size, &table, sizeof table);
}

static ULONG get(int which, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rw_size, PUCHAR rod, ULONG rod_size)
{
    if (rw && rw_size == 1)
        *rw = on[which][type];
    if (!rod)
        return NO_ERROR;
    memset(rod, 0, rod_size);
    if (!on[which][type])
        return ERROR_NOT_SUPPORTED;
#define GROUP(structure) structure *group = (void *)rod; if (rod_size != sizeof *group) return ERROR_INVALID_USER_BUFFER
    if (type == TcpConnectionEstatsRec) {
        GROUP(TCP_ESTATS_REC_ROD_v0);
        group->MaxRwinSent = which ? 64000 : 64512;
        group->WinScaleSent = which ? 8 : 0;
    } else if (type == TcpConnectionEstatsObsRec) {
        GROUP(TCP_ESTATS_OBS_REC_ROD_v0);
        group->CurRwinRcvd = 3000000;
        group->WinScaleRcvd = 7;
    } else if (type == TcpConnectionEstatsData) {
        GROUP(TCP_ESTATS_DATA_ROD_v0);
        /* 64,000 B in each millisecond, which is a round trip. */
        LARGE_INTEGER ticks, each_second;
        QueryPerformanceCounter(&ticks);
        QueryPerformanceFrequency(&each_second);
        group->ThruBytesReceived = 64e6 * ticks.QuadPart / each_second.QuadPart;
    } else if (type == TcpConnectionEstatsPath) {
        GROUP(TCP_ESTATS_PATH_ROD_v0);
        group->SampleRtt = group->SmoothedRtt = 1;
    } else if (type == TcpConnectionEstatsSndCong) {
        GROUP(TCP_ESTATS_SND_CONG_ROD_v0);
        group->CurCwnd = 2000000;
    } else {
        GROUP(TCP_ESTATS_SEND_BUFF_ROD_v0);
        group->MaxRetxQueue = 65536;
    }
    return NO_ERROR;
}

static ULONG set(int which, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rw_size)
{
    FILE *denied = fopen("denied.txt", "r"), *log;
    if (denied) {
        fclose(denied);
        return ERROR_ACCESS_DENIED;
    }
    if (rw_size != 1 || *rw > 1)
        return ERROR_INVALID_USER_BUFFER;
    on[which][type] = *rw;
    if ((log = fopen("estats.txt", "a"))) {
        fprintf(log, "%d %d %s\n", which, type, *rw ? "on" : "off");
        fclose(log);
    }
    return NO_ERROR;
}

static int four(PMIB_TCPROW row)
{
    return row->dwLocalAddr == 0x010200c0 && row->dwLocalPort == PORT(5201) && row->dwRemotePort == PORT(49152);
}

static int six(PMIB_TCP6ROW row)
{
    return row->LocalAddr.s6_addr[15] == 1 && row->dwLocalPort == PORT(443) && row->RemoteAddr.s6_addr[15] == 2;
}

__declspec(dllexport) ULONG WINAPI GetPerTcpConnectionEStats(PMIB_TCPROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rwv,
    ULONG rws, PUCHAR ros, ULONG rosv, ULONG ross, PUCHAR rod, ULONG rodv, ULONG rods)
{
    if (rwv || rosv || rodv || ros || ross)
        return ERROR_NOT_SUPPORTED;
    return four(row) ? get(0, type, rw, rws, rod, rods) : ERROR_NOT_FOUND;
}

__declspec(dllexport) ULONG WINAPI GetPerTcp6ConnectionEStats(PMIB_TCP6ROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG rwv,
    ULONG rws, PUCHAR ros, ULONG rosv, ULONG ross, PUCHAR rod, ULONG rodv, ULONG rods)
{
    if (rwv || rosv || rodv || ros || ross)
        return ERROR_NOT_SUPPORTED;
    return six(row) ? get(1, type, rw, rws, rod, rods) : ERROR_NOT_FOUND;
}

__declspec(dllexport) ULONG WINAPI SetPerTcpConnectionEStats(
    PMIB_TCPROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG version, ULONG size, ULONG offset)
{
    if (version || offset)
        return ERROR_NOT_SUPPORTED;
    return four(row) ? set(0, type, rw, size) : ERROR_NOT_FOUND;
}

__declspec(dllexport) ULONG WINAPI SetPerTcp6ConnectionEStats(
    PMIB_TCP6ROW row, TCP_ESTATS_TYPE type, PUCHAR rw, ULONG version, ULONG size, ULONG offset)
{
    if (version || offset)
        return ERROR_NOT_SUPPORTED;
    return six(row) ? set(1, type, rw, size) : ERROR_NOT_FOUND;
}
