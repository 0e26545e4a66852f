// An application sets SO_SNDBUF or SO_RCVBUF, which ends automatic sizing: here the call is swallowed, so that the system goes on
// sizing, and whoever asks for the size afterwards is told what a kernel would have told.
//
// Only the context and helpers of bpf-helpers(7) are used, no structures of a kernel: no relocation (CO-RE) is needed.
// `crates/bpf/tests/fresh.rs` compiles it: FULLPIPE_GENERATE=1 cargo test -p fullpipe-bpf --test fresh

typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define POINTER(type, name) union { type name; u64 : 64; } __attribute__((aligned(8)))

// include/uapi/linux/bpf.h: struct bpf_sock (its first fields), struct bpf_sockopt.
struct bpf_sock {
	u32 bound_dev_if, family, type, protocol;
};

struct bpf_sockopt {
	POINTER(struct bpf_sock *, sk);
	POINTER(void *, optval);
	POINTER(void *, optval_end);
	s32 level, optname, optlen, retval;
};

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_SK_STORAGE = 24, NO_PREALLOC = 1, CREATE = 1 };

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*get_current_pid_tgid)(void) = (void *)14;
static long (*get_current_comm)(void *name, u32 size) = (void *)16;
static void *(*sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;

// asm-generic/socket.h; IPPROTO_TCP.
enum { SOL_SOCKET = 1, SO_SNDBUF = 7, SO_RCVBUF = 8, SO_SNDBUFFORCE = 32, SO_RCVBUFFORCE = 33, TCP = 6 };

// The kernel doubles what is asked for, to make room for its own use.
enum { DOUBLED = 2, LARGEST = 0x3fffffff };

// Set by whoever loads it: every process of the control group, else those of this name (its 16 bytes) and those in PROCESSES.
volatile const u32 everyone = 0;
volatile const u64 name_low = 0, name_high = 0;

struct asked {
	u32 send, receive;
};

struct {
	int (*type)[MAP_SK_STORAGE];
	int (*map_flags)[NO_PREALLOC];
	int *key;
	struct asked *value;
} ASKED SECTION(".maps");

struct {
	int (*type)[MAP_HASH];
	int (*max_entries)[4096];
	u32 *key;
	u32 *value;
} PROCESSES SECTION(".maps");

// Calls that were swallowed: of SO_SNDBUF, of SO_RCVBUF.
struct {
	int (*type)[MAP_ARRAY];
	int (*max_entries)[2];
	u32 *key;
	u64 *value;
} SWALLOWED SECTION(".maps");

static int is_send(s32 option)
{
	return option == SO_SNDBUF || option == SO_SNDBUFFORCE;
}

static int is_buffer_of_tcp(const struct bpf_sockopt *call)
{
	int is_receive = call->optname == SO_RCVBUF || call->optname == SO_RCVBUFFORCE;
	return call->level == SOL_SOCKET && (is_receive || is_send(call->optname)) && call->sk && call->sk->protocol == TCP;
}

static int is_wanted(void)
{
	u64 name[2] = { 0, 0 };
	u32 process = get_current_pid_tgid() >> 32;
	if (everyone)
		return 1;
	if (name_low && !get_current_comm(name, sizeof(name)) && name[0] == name_low && name[1] == name_high)
		return 1;
	return map_lookup_elem(&PROCESSES, &process) != 0;
}

SECTION("cgroup/setsockopt")
int unpin_set(struct bpf_sockopt *call)
{
	s32 *value = call->optval;
	if (!is_buffer_of_tcp(call) || (void *)(value + 1) > call->optval_end || !is_wanted())
		return 1;
	struct asked nothing = { 0, 0 };
	struct asked *asked = sk_storage_get(&ASKED, call->sk, &nothing, CREATE);
	if (!asked)
		return 1;
	u32 which = is_send(call->optname) ? 0 : 1;
	u32 size = *value < 0 || *value > LARGEST ? LARGEST : *value;
	if (which == 0)
		asked->send = size;
	else
		asked->receive = size;
	u64 *count = map_lookup_elem(&SWALLOWED, &which);
	if (count)
		__sync_fetch_and_add(count, 1);
	// The kernel does nothing more, and the application is told that all went well.
	call->optlen = -1;
	return 1;
}

SECTION("cgroup/getsockopt")
int unpin_get(struct bpf_sockopt *call)
{
	s32 *value = call->optval;
	if (!is_buffer_of_tcp(call) || (void *)(value + 1) > call->optval_end || call->retval)
		return 1;
	struct asked *asked = sk_storage_get(&ASKED, call->sk, 0, 0);
	if (!asked)
		return 1;
	s32 size = DOUBLED * (is_send(call->optname) ? asked->send : asked->receive);
	// An application that is not content with less than it set would give up.
	if (*value < size)
		*value = size;
	return 1;
}

char LICENSE[] SECTION("license") = "MIT OR Apache-2.0";
