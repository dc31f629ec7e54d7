/* Shows a process another time of day: so many seconds from the true one as the file says that WALL_CLOCK
 * names. All other clocks are left as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static time_t offset(void) {
    char text[32] = "";
    int file = open(getenv("WALL_CLOCK"), O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += offset();
    return (int)result;
}
