/* Preloaded into a gateway under test: a slow or failing disk, and a clock that jumps.
 *
 * CHAOS_CONTROL names a file of three 64-bit integers that the test changes while the gateway runs: nanoseconds that
 * the wall clock is off, nanoseconds that every sync takes longer, the errno that every sync fails with (0 = none).
 * The monotonic clock is left alone, as a clock that is set leaves it alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile int64_t *control;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("CHAOS_CONTROL");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *page = mmap(NULL, 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED)
        control = page;
    close(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && control && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
        int64_t at = now->tv_sec * SECOND + now->tv_nsec + control[0];
        now->tv_sec = at / SECOND;
        now->tv_nsec = at % SECOND;
    }
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out)
        *out = exact.tv_sec;
    return exact.tv_sec;
}

static int synced(long call, int file) {
    if (control && control[1]) {
        struct timespec pause = {control[1] / SECOND, control[1] % SECOND};
        nanosleep(&pause, NULL);
    }
    if (control && control[2]) {
        errno = (int)control[2];
        return -1;
    }
    return (int)syscall(call, file);
}

int fsync(int file) { return synced(SYS_fsync, file); }

int fdatasync(int file) { return synced(SYS_fdatasync, file); }
