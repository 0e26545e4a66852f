// Buffers for connections to one destination: SO_RCVBUF and SO_SNDBUF are set before the SYN leaves, so that the window scale fits
// them, and, where the other end connects, before the first payload is taken.
//
// Only the context and helpers of bpf-helpers(7) are used, no structures of a kernel: no relocation (CO-RE) is needed.
// `crates/bpf/tests/fresh.rs` compiles it: FULLPIPE_GENERATE=1 cargo test -p fullpipe-bpf --test fresh

typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))

// include/uapi/linux/bpf.h: struct bpf_sock_ops (its first fields). Volatile, because the verifier takes no load whose place the
// compiler chose in a branch.
struct bpf_sock_ops {
	volatile u32 op, args[4], family, remote_ip4, local_ip4, remote_ip6[4];
};

enum { CONNECTING = 3, ACCEPTED = 5 };
enum { MAP_LPM_TRIE = 11, NO_PREALLOC = 1 };
enum { SOL_SOCKET = 1, SO_SNDBUF = 7, SO_RCVBUF = 8, AF_INET = 2 };

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*setsockopt)(void *context, s32 level, s32 name, void *value, s32 size) = (void *)49;
static long (*getsockopt)(void *context, s32 level, s32 name, void *value, s32 size) = (void *)57;
static u64 (*get_netns_cookie)(void *context) = (void *)122;

// A network namespace's cookie, and an address of IPv6, or of IPv4 mapped into it.
struct place {
	u32 bits;
	u32 words[6];
};

// As setsockopt takes them; 0 leaves a buffer alone.
struct buffers {
	u32 receive, send;
};

struct {
	int (*type)[MAP_LPM_TRIE];
	int (*max_entries)[1024];
	int (*map_flags)[NO_PREALLOC];
	struct place *key;
	struct buffers *value;
} DESTINATIONS SECTION(".maps");

// Raised only: what an application, or the system, made larger stays.
static void raise(struct bpf_sock_ops *socket, s32 option, u32 size)
{
	u32 now = 0;
	if (!size)
		return;
	// The kernel counts double what is asked for. Before Linux 6.0 it does not tell, and the size is set.
	if (!getsockopt(socket, SOL_SOCKET, option, &now, sizeof(now)) && now >= 2 * size)
		return;
	setsockopt(socket, SOL_SOCKET, option, &size, sizeof(size));
}

SECTION("sockops")
int destination(struct bpf_sock_ops *socket)
{
	if (socket->op != CONNECTING && socket->op != ACCEPTED)
		return 1;
	u64 cookie = get_netns_cookie(socket);
	u32 v4 = socket->remote_ip4;
	u32 v6[4] = { socket->remote_ip6[0], socket->remote_ip6[1], socket->remote_ip6[2], socket->remote_ip6[3] };
	int is_v4 = socket->family == AF_INET;
	struct place place = {
		.bits = 8 * sizeof(place.words),
		.words = {
			cookie,
			cookie >> 32,
			is_v4 ? 0 : v6[0],
			is_v4 ? 0 : v6[1],
			is_v4 ? __builtin_bswap32(0xffff) : v6[2],
			is_v4 ? v4 : v6[3],
		},
	};
	struct buffers *wanted = map_lookup_elem(&DESTINATIONS, &place);
	if (wanted) {
		raise(socket, SO_RCVBUF, wanted->receive);
		raise(socket, SO_SNDBUF, wanted->send);
	}
	return 1;
}

char LICENSE[] SECTION("license") = "MIT OR Apache-2.0";
