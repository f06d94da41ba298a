/* A simulated disk's side of a system call: preloaded into the archive by the tests of power cuts
 * and of failing calls.
 *
 * Every call that changes a file below FAULT_ROOT is written down, in order and with its bytes, in
 * FAULT_LOG; disk_model.py builds from it the directory that a power cut would leave. Calls can be
 * made to fail through the shared page of FAULT_CONTROL; see fault_shim.py for both formats.
 *
 * Calls are caught by a seccomp filter that raises SIGSYS, not by replacing functions of libc: some
 * of the archive's calls do not go through libc. The handler makes the call itself, from the one
 * instruction that the filter lets pass. Nothing is really synced, since only what was asked for
 * counts here: a sync takes a short while and is written down at its beginning and at its end. What
 * is written between the two is not covered by it.
 *
 * It is no security boundary, and it knows x86-64 only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/falloc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define SYNC_NANOSECONDS 100000

/* Classes of calls; fault_shim.py has the same list. */
enum {
    OPEN, CREATE, WRITE, SYNC, TRUNCATE, ALLOCATE, RENAME, UNLINK, MKDIR, MODIFY, READ, STATFS, CLASSES
};
/* What an armed control page does. */
enum { IDLE, ONCE, ALWAYS, SHORT };

struct control {
    uint32_t mode;
    uint32_t classes; /* one bit for each class that fails */
    int32_t error;    /* errno */
    int32_t countdown;
    uint32_t fired;
    uint32_t calls[CLASSES];
    char match[256]; /* only paths that contain this */
    uint32_t pause;  /* set by the test: the next call that is written down waits for the kill */
    uint32_t paused; /* whether one waits */
};

struct header {
    char op;
    char class;
    int16_t error;
    uint32_t path_bytes;
    uint64_t file; /* inode */
    uint64_t offset;
    uint64_t bytes;
};

long fault_gate(long number, long a, long b, long c, long d, long e, long f);
extern char fault_gate_after[];
__asm__(".text\n.globl fault_gate\nfault_gate:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\n"
        "mov %r9, %r8\nmov 8(%rsp), %r9\nsyscall\n.globl fault_gate_after\nfault_gate_after:\nret\n");

static char root[PATH_BYTES];
static size_t root_bytes;
static int record_file = -1;
static struct control *control;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static uint64_t syncs;

/* Begins a call and its record. While one waits here, no other is between its call and its record,
 * where a kill would let the call out. */
static void lock(void) {
    pthread_mutex_lock(&order);
    while (__atomic_load_n(&control->pause, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&control->paused, 1, __ATOMIC_SEQ_CST);
        usleep(1000);
    }
}

static long call(long n, long a, long b, long c, long d, long e, long f) {
    return fault_gate(n, a, b, c, d, e, f);
}

static int is_watched(const char *path) {
    return !strncmp(path, root, root_bytes) && (path[root_bytes] == '/' || !path[root_bytes]);
}

/* The path of an open file; 0 unless it is watched. */
static int path_of(int fd, char *path) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_BYTES - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return is_watched(path);
}

/* The absolute path that a call means; 0 unless it is watched. */
static int path_at(int dir, const char *name, char *path) {
    if (!name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_BYTES, "%s", name);
        return is_watched(path);
    }
    char base[PATH_BYTES];
    if (dir == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else if (!path_of(dir, base)) {
        return 0;
    }
    if (snprintf(path, PATH_BYTES, "%s/%s", base, name) >= PATH_BYTES) return 0;
    return is_watched(path);
}

static uint64_t inode_of(int fd) {
    struct stat s;
    return fstat(fd, &s) ? 0 : s.st_ino;
}

static void record(char op, int class, int error, const char *path, uint64_t file, uint64_t offset,
                   uint64_t bytes, const void *data) {
    struct header h = {op, (char)class, (int16_t)error, strlen(path), file, offset, bytes};
    struct iovec v[3] = {{&h, sizeof h}, {(void *)path, h.path_bytes}, {(void *)data, bytes}};
    call(SYS_writev, record_file, (long)v, data ? 3 : 2, 0, 0, 0);
}

/* Whether this call is to fail: its errno, or -1 for a short write, or 0. */
static int is_failing(int class, const char *path) {
    __atomic_add_fetch(&control->calls[class], 1, __ATOMIC_SEQ_CST);
    uint32_t mode = __atomic_load_n(&control->mode, __ATOMIC_SEQ_CST);
    if (mode == IDLE || !(control->classes >> class & 1)) return 0;
    if (control->match[0] && !strstr(path, control->match)) return 0;
    if (__atomic_sub_fetch(&control->countdown, 1, __ATOMIC_SEQ_CST) > 0) return 0;
    if (mode != ALWAYS) {
        /* Of two calls that come here together one fires. */
        uint32_t expected = mode;
        if (!__atomic_compare_exchange_n(&control->mode, &expected, IDLE, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            return 0;
    }
    __atomic_add_fetch(&control->fired, 1, __ATOMIC_SEQ_CST);
    lock();
    record('I', class, mode == SHORT ? -1 : control->error, path, 0, 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return mode == SHORT ? -1 : control->error;
}

static long do_open(long n, long dir, const char *name, long flags, long mode) {
    char path[PATH_BYTES];
    int dirfd = n == SYS_openat ? (int)dir : AT_FDCWD;
    if (!path_at(dirfd, name, path)) return call(SYS_openat, dirfd, (long)name, flags, mode, 0, 0);
    struct stat s;
    int creates = (flags & O_CREAT) && stat(path, &s) != 0;
    int error = is_failing(creates ? CREATE : OPEN, path);
    if (!error && !creates && (flags & O_ACCMODE) != O_RDONLY) error = is_failing(MODIFY, path);
    if (error > 0) return -error;
    if (!(flags & (O_CREAT | O_TRUNC)))
        return call(SYS_openat, dirfd, (long)name, flags, mode, 0, 0);
    lock();
    int existed = stat(path, &s) == 0;
    long fd = call(SYS_openat, dirfd, (long)name, flags, mode, 0, 0);
    if (fd >= 0 && !existed) record('C', CREATE, 0, path, inode_of(fd), 0, 0, NULL);
    else if (fd >= 0 && (flags & O_TRUNC)) record('T', TRUNCATE, 0, path, inode_of(fd), 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return fd;
}

static void record_synced(const char *path, int fd);

/* One stretch of bytes to a watched file; `at` is -1 for the file's own position. */
static long do_write(int fd, const char *path, const void *bytes, size_t n, off_t at) {
    int error = n ? is_failing(WRITE, path) : 0;
    if (error > 0) return -error;
    if (error < 0) n = n > 1 ? n / 2 : n;
    int flags = fcntl(fd, F_GETFL);
    lock();
    struct stat s;
    fstat(fd, &s);
    off_t offset = flags & O_APPEND ? s.st_size : at >= 0 ? at : lseek(fd, 0, SEEK_CUR);
    long done = at >= 0 ? call(SYS_pwrite64, fd, (long)bytes, n, at, 0, 0)
                        : call(SYS_write, fd, (long)bytes, n, 0, 0, 0);
    if (done > 0) record('W', WRITE, 0, path, s.st_ino, offset, done, bytes);
    pthread_mutex_unlock(&order);
    if (done > 0 && flags & O_DSYNC) record_synced(path, fd);
    return done;
}

static long do_write_many(int fd, const char *path, const struct iovec *v, int count, off_t at) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        if (!v[i].iov_len) continue;
        long done = do_write(fd, path, v[i].iov_base, v[i].iov_len, at < 0 ? at : at + sum);
        if (done < 0) return sum ? sum : done;
        sum += done;
        if ((size_t)done < v[i].iov_len) break;
    }
    return sum;
}

/* A read of a watched file; a short one is not made. */
static long do_read(long n, const char *path, const long *a) {
    int error = is_failing(READ, path);
    if (error > 0) return -error;
    return call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* How much is free on the file system of a watched file; nothing, where that fails. */
static long do_statfs(long n, const char *path, const long *a) {
    long done = call(n, a[0], a[1], 0, 0, 0, 0);
    struct statfs *found = (struct statfs *)a[1];
    if (!done && is_failing(STATFS, path) > 0) found->f_bavail = found->f_bfree = 0;
    return done;
}

static void record_synced(const char *path, int fd) {
    uint64_t file = inode_of(fd);
    lock();
    uint64_t sync = ++syncs;
    record('S', SYNC, 0, path, file, sync, 0, NULL);
    record('E', SYNC, 0, path, file, sync, 0, NULL);
    pthread_mutex_unlock(&order);
}

static long do_sync(int fd, const char *path) {
    uint64_t file = inode_of(fd);
    lock();
    uint64_t sync = ++syncs;
    record('S', SYNC, 0, path, file, sync, 0, NULL);
    pthread_mutex_unlock(&order);
    int error = is_failing(SYNC, path);
    struct timespec while_it_lasts = {0, SYNC_NANOSECONDS};
    nanosleep(&while_it_lasts, NULL);
    lock();
    record('E', SYNC, error > 0 ? error : 0, path, file, sync, 0, NULL);
    pthread_mutex_unlock(&order);
    return error > 0 ? -error : 0;
}

static long do_truncate(int fd, const char *path, off_t size) {
    int error = is_failing(TRUNCATE, path);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_ftruncate, fd, size, 0, 0, 0, 0);
    if (!done) record('T', TRUNCATE, 0, path, inode_of(fd), size, 0, NULL);
    pthread_mutex_unlock(&order);
    return done;
}

static long do_allocate(int fd, const char *path, long mode, off_t offset, off_t bytes) {
    int error = is_failing(ALLOCATE, path);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_fallocate, fd, mode, offset, bytes, 0, 0);
    uint64_t file = inode_of(fd);
    if (!done && mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        record('P', ALLOCATE, 0, path, file, offset, bytes, NULL);
    else if (!done && !(mode & FALLOC_FL_KEEP_SIZE))
        record('A', ALLOCATE, 0, path, file, offset, bytes, NULL);
    pthread_mutex_unlock(&order);
    return done;
}

static long do_rename(int old_dir, const char *old, int new_dir, const char *new, long flags) {
    char from[PATH_BYTES], to[PATH_BYTES];
    if (!path_at(old_dir, old, from) || !path_at(new_dir, new, to))
        return call(SYS_renameat2, old_dir, (long)old, new_dir, (long)new, flags, 0);
    int error = is_failing(RENAME, from);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_renameat2, old_dir, (long)old, new_dir, (long)new, flags, 0);
    /* The second path is the record's bytes. One that replaces nothing is like any other, done. */
    if (!done && !(flags & ~RENAME_NOREPLACE)) record('R', RENAME, 0, from, 0, 0, strlen(to), to);
    else if (!done) record('!', RENAME, 0, from, 0, 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return done;
}

static long do_link(int old_dir, const char *old, int new_dir, const char *new, long flags) {
    char from[PATH_BYTES], to[PATH_BYTES];
    if (!path_at(new_dir, new, to) || !path_at(old_dir, old, from))
        return call(SYS_linkat, old_dir, (long)old, new_dir, (long)new, flags, 0);
    int error = is_failing(RENAME, to);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_linkat, old_dir, (long)old, new_dir, (long)new, flags, 0);
    if (!done) record('L', RENAME, 0, from, 0, 0, strlen(to), to);
    pthread_mutex_unlock(&order);
    return done;
}

static long do_unlink(int dir, const char *name, long flags) {
    char path[PATH_BYTES];
    if (!path_at(dir, name, path)) return call(SYS_unlinkat, dir, (long)name, flags, 0, 0, 0);
    int error = is_failing(UNLINK, path);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_unlinkat, dir, (long)name, flags, 0, 0, 0);
    if (!done) record('U', UNLINK, 0, path, 0, 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return done;
}

static long do_mkdir(int dir, const char *name, long mode) {
    char path[PATH_BYTES];
    if (!path_at(dir, name, path)) return call(SYS_mkdirat, dir, (long)name, mode, 0, 0, 0);
    int error = is_failing(MKDIR, path);
    if (error > 0) return -error;
    lock();
    long done = call(SYS_mkdirat, dir, (long)name, mode, 0, 0, 0);
    struct stat s;
    if (!done && !stat(path, &s)) record('M', MKDIR, 0, path, s.st_ino, 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return done;
}

/* A call by which a watched file would change unseen: refused, or written down as such. */
static long do_unseen(long n, const long *a) {
    char path[PATH_BYTES];
    int fd = (int)(n == SYS_mmap ? a[4] : n == SYS_sendfile ? a[0] : a[2]);
    if (n == SYS_io_uring_setup) return -ENOSYS;
    if (!path_of(fd, path)) return call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (n != SYS_mmap) return -ENOSYS; /* the caller falls back to writes */
    lock();
    record('!', CLASSES, 0, path, 0, 0, 0, NULL);
    pthread_mutex_unlock(&order);
    return call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long on_file(long n, const long *a) {
    char path[PATH_BYTES];
    int fd = (int)a[0];
    if (!path_of(fd, path)) return call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
    switch (n) {
    case SYS_write: return do_write(fd, path, (void *)a[1], a[2], -1);
    case SYS_pwrite64: return do_write(fd, path, (void *)a[1], a[2], a[3]);
    case SYS_writev: return do_write_many(fd, path, (void *)a[1], a[2], -1);
    case SYS_pwritev:
    case SYS_pwritev2: return do_write_many(fd, path, (void *)a[1], a[2], a[3]);
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2: return do_read(n, path, a);
    case SYS_fstatfs: return do_statfs(n, path, a);
    case SYS_fsync:
    case SYS_fdatasync: return do_sync(fd, path);
    case SYS_ftruncate: return do_truncate(fd, path, a[1]);
    default: return do_allocate(fd, path, a[1], a[2], a[3]);
    }
}

static long on_statfs(long n, const long *a) {
    char path[PATH_BYTES];
    if (path_at(AT_FDCWD, (char *)a[0], path)) return do_statfs(n, path, a);
    return call(n, a[0], a[1], 0, 0, 0, 0);
}

static long answer(long n, const long *a) {
    switch (n) {
    case SYS_open: return do_open(n, 0, (char *)a[0], a[1], a[2]);
    case SYS_creat: return do_open(n, 0, (char *)a[0], O_CREAT | O_WRONLY | O_TRUNC, a[1]);
    case SYS_openat: return do_open(n, a[0], (char *)a[1], a[2], a[3]);
    case SYS_rename: return do_rename(AT_FDCWD, (char *)a[0], AT_FDCWD, (char *)a[1], 0);
    case SYS_renameat: return do_rename(a[0], (char *)a[1], a[2], (char *)a[3], 0);
    case SYS_renameat2: return do_rename(a[0], (char *)a[1], a[2], (char *)a[3], a[4]);
    case SYS_link: return do_link(AT_FDCWD, (char *)a[0], AT_FDCWD, (char *)a[1], 0);
    case SYS_linkat: return do_link(a[0], (char *)a[1], a[2], (char *)a[3], a[4]);
    case SYS_unlink: return do_unlink(AT_FDCWD, (char *)a[0], 0);
    case SYS_unlinkat: return do_unlink(a[0], (char *)a[1], a[2]);
    case SYS_rmdir: return do_unlink(AT_FDCWD, (char *)a[0], AT_REMOVEDIR);
    case SYS_mkdir: return do_mkdir(AT_FDCWD, (char *)a[0], a[1]);
    case SYS_mkdirat: return do_mkdir(a[0], (char *)a[1], a[2]);
    case SYS_statfs: return on_statfs(n, a);
    case SYS_mmap:
    case SYS_sendfile:
    case SYS_copy_file_range:
    case SYS_splice:
    case SYS_io_uring_setup: return do_unseen(n, a);
    default: return on_file(n, a);
    }
}

static void on_call(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;
    long a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    r[REG_RAX] = answer(info->si_syscall, a);
    errno = saved;
}

static int install(void) {
    static const int caught[] = {
        SYS_open,      SYS_creat,    SYS_openat,   SYS_write,     SYS_pwrite64,  SYS_writev,
        SYS_pwritev,   SYS_pwritev2, SYS_fsync,    SYS_fdatasync, SYS_ftruncate, SYS_fallocate,
        SYS_rename,    SYS_renameat, SYS_renameat2, SYS_link,     SYS_linkat,    SYS_unlink,
        SYS_unlinkat,  SYS_rmdir,    SYS_mkdir,    SYS_mkdirat,   SYS_sendfile,  SYS_splice,
        SYS_copy_file_range, SYS_io_uring_setup,
        /* Last, and only where they are asked for: they are most calls. */
        SYS_read,      SYS_readv,    SYS_pread64,  SYS_preadv,    SYS_preadv2,   SYS_statfs,
        SYS_fstatfs};
    enum { ALL = sizeof caught / sizeof *caught, READS = 7 };
    int count = getenv("FAULT_READS") ? ALL : ALL - READS;
    struct sock_filter f[128];
    int n = 0;
    uint64_t after = (uint64_t)fault_gate_after;
    uint32_t low = offsetof(struct seccomp_data, instruction_pointer);
#define PUT(...) f[n++] = (struct sock_filter)__VA_ARGS__
    PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)after, 0, 3));
    PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low + 4));
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(after >> 32), 0, 1));
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (int i = 0; i < count; i++) {
        PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, caught[i], 0, 1));
        PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    }
    /* Of mappings only those that share what they write. */
    PUT(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5));
    PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])));
    PUT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 3));
    PUT(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])));
    PUT(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_WRITE, 0, 1));
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    PUT(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

__attribute__((constructor)) static void begin(void) {
    const char *r = getenv("FAULT_ROOT"), *l = getenv("FAULT_LOG"), *c = getenv("FAULT_CONTROL");
    if (!r || !l || !c) return;
    snprintf(root, sizeof root, "%s", r);
    root_bytes = strlen(root);
    record_file = open(l, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int page = open(c, O_RDWR | O_CLOEXEC);
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    close(page);
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (record_file < 0 || control == MAP_FAILED || sigaction(SIGSYS, &action, NULL) || install()) {
        perror("the shim cannot begin");
        _exit(121);
    }
}
