// Tells of each TCP connection of one network namespace when it ends: what it moved, how it ended, and whose it was. Who looks at
// connections now and then misses those that begin and end in between, and what others moved after the last look.
//
// Fields of kernel structures are found by their names (CO-RE): the kernel's BTF is needed.
// `crates/bpf/tests/fresh.rs` compiles it: FULLPIPE_GENERATE=1 cargo test -p fullpipe-bpf --test fresh

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define KERNEL __attribute__((preserve_access_index))

struct ns_common {
	u32 inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} KERNEL;

struct sock_common {
	u32 skc_daddr;
	u16 skc_family;
	u64 skc_flags;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct {
		u64 counter;
	} skc_cookie;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	s32 sk_err;
} KERNEL;

struct tcp_sock {
	u64 bytes_received, bytes_sent, bytes_acked, bytes_retrans;
	u32 data_segs_out, total_retrans, srtt_us;
} KERNEL;

struct task_struct {
	struct task_struct *group_leader;
	char comm[16];
} KERNEL;

// include/net/tcp_states.h.
enum { ESTABLISHED = 1, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING };
// include/net/sock.h: set when a FIN has come (`tcp_fin`), which counts as a byte received.
enum { SOCK_DONE = 1 };
enum { AF_INET6 = 10 };
enum { MAP_ARRAY = 2, MAP_SK_STORAGE = 24, MAP_RINGBUF = 27, NO_PREALLOC = 1, CREATE = 1, NO_WAKEUP = 1 };

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static void *(*sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static struct tcp_sock *(*skc_to_tcp_sock)(void *sk) = (void *)137;
static struct task_struct *(*get_current_task_btf)(void) = (void *)158;

// Set by whoever loads it: the inode of the network namespace.
volatile const u32 namespace = 0;

struct owner {
	char name[16];
};

// How it looks in the ring; `crates/bpf/src/ends.rs` reads it.
struct end {
	u64 cookie, acked, received, sent, retransmitted_bytes;
	u32 segments, retransmitted, srtt_us, error;
	u32 peer[4];
	struct owner owner;
	u16 family;
	u8 state, has_fin;
	u32 pad;
};

struct {
	int (*type)[MAP_SK_STORAGE];
	int (*map_flags)[NO_PREALLOC];
	int *key;
	struct owner *value;
} OWNERS SECTION(".maps");

struct {
	int (*type)[MAP_RINGBUF];
	int (*max_entries)[4 << 20];
} ENDS SECTION(".maps");

// Ends that the ring had no room for.
struct {
	int (*type)[MAP_ARRAY];
	int (*max_entries)[1];
	u32 *key;
	u64 *value;
} LOST SECTION(".maps");

static void current_owner(struct owner *owner)
{
	struct task_struct *task = get_current_task_btf();
	probe_read_kernel(owner->name, sizeof(owner->name), &task->group_leader->comm);
}

// connect, shutdown and close are calls of whoever has the socket.
static void remember(struct sock *sk)
{
	struct owner *owner = sk_storage_get(&OWNERS, sk, 0, CREATE);
	if (owner && !owner->name[0])
		current_owner(owner);
}

static void report(struct sock *sk, int before)
{
	struct tcp_sock *tcp = skc_to_tcp_sock(sk);
	if (!tcp)
		return;
	struct end end = {
		.cookie = sk->__sk_common.skc_cookie.counter,
		.acked = tcp->bytes_acked,
		.received = tcp->bytes_received,
		.sent = tcp->bytes_sent,
		.retransmitted_bytes = tcp->bytes_retrans,
		.segments = tcp->data_segs_out,
		.retransmitted = tcp->total_retrans,
		.srtt_us = tcp->srtt_us,
		.error = sk->sk_err,
		.family = sk->__sk_common.skc_family,
		.state = before,
		.has_fin = sk->__sk_common.skc_flags >> SOCK_DONE & 1,
	};
	if (end.family == AF_INET6)
		for (int at = 0; at < 4; at++)
			end.peer[at] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[at];
	else
		end.peer[0] = sk->__sk_common.skc_daddr;
	struct owner *owner = sk_storage_get(&OWNERS, sk, 0, 0);
	if (owner)
		end.owner = *owner;
	else if (!end.error && (before == ESTABLISHED || before == CLOSE_WAIT))
		// Closed with a reset, at once.
		current_owner(&end.owner);
	if (ringbuf_output(&ENDS, &end, sizeof(end), NO_WAKEUP)) {
		u32 at = 0;
		u64 *lost = map_lookup_elem(&LOST, &at);
		if (lost)
			__sync_fetch_and_add(lost, 1);
	}
}

SECTION("tp_btf/inet_sock_set_state")
int ends(u64 *context)
{
	struct sock *sk = (void *)context[0];
	int before = context[1], now = context[2];
	int is_call = now == SYN_SENT || now == FIN_WAIT1 || now == LAST_ACK;
	int is_end = now == CLOSE && before != CLOSE && before != LISTEN;
	if ((!is_call && !is_end) || sk->__sk_common.skc_net.net->ns.inum != namespace)
		return 0;
	if (is_end)
		report(sk, before);
	else
		remember(sk);
	return 0;
}

// The helpers that read kernel structures are for programs that may be had under the GPL, too, as the MIT license allows.
char LICENSE[] SECTION("license") = "Dual MIT/GPL";
