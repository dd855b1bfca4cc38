/* What BCC declares by itself, for clang alone: those of the kernel's helpers (include/uapi/linux/bpf.h) that refleak calls. */
#include <linux/types.h>

struct pt_regs;

static void *(*bpf_map_lookup_elem)(void *map, void *key) = (void *)1;
static int (*bpf_map_update_elem)(void *map, void *key, void *value, u64 flags) = (void *)2;
static int (*bpf_map_delete_elem)(void *map, void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*bpf_get_prandom_u32)(void) = (void *)7;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*bpf_get_current_task)(void) = (void *)35;
static int (*bpf_probe_write_user)(void *dst, void *src, u32 size) = (void *)36;
static int (*bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static int (*bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static int (*bpf_probe_read_user_str)(void *dst, u32 size, const void *src) = (void *)114;
static int (*bpf_probe_read_kernel_str)(void *dst, u32 size, const void *src) = (void *)115;
static int (*bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static int (*bpf_copy_from_user)(void *dst, u32 size, const void *src) = (void *)148;
static void *(*bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;
static int (*bpf_copy_from_user_task)(void *dst, u32 size, const void *src, void *task, u64 flags) = (void *)191;
u64 bpf_pseudo_fd(u64 kind, u64 fd) __asm__("llvm.bpf.pseudo");
