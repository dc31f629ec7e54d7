/* Lets a guard of `lanelect exec` start only when the file SLOW_GUARD exists, as on a host that is
   short of memory. The file SLOW_GUARD.waits says that one waits. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_for_file(void) {
    const char *file = getenv("SLOW_GUARD");
    char line[256] = "", waits[4096];
    int descriptor = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = descriptor < 0 ? 0 : read(descriptor, line, sizeof line - 1);
    close(descriptor);
    if (!file || length < 9 || strcmp(line, "lanelect") || strcmp(line + 9, "exec-guard"))
        return;
    snprintf(waits, sizeof waits, "%s.waits", file);
    close(open(waits, O_WRONLY | O_CREAT, 0600));
    while (access(file, F_OK) != 0)
        usleep(10000);
}
