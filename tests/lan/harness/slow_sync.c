/* Makes each sync take SLOW_SYNC_MS milliseconds longer, as on a worn flash card. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int fsync(int descriptor) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    const char *delay = getenv("SLOW_SYNC_MS");
    usleep(1000 * (delay ? atoi(delay) : 0));
    return next(descriptor);
}
