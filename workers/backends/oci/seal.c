#include "proto/base/fd.h"
#include "workers/backends/oci/oci.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

static bool copy(int from, int to)
{
    struct stat st;
    char magic[4] = "";
    if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || pread(from, magic, 4, 0) != 4 ||
        memcmp(magic, "\177ELF", 4) != 0) /* a script is executed where it is */
        return false;
    off_t at = 0;
    while (at < st.st_size)
        if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
            return false;
    return true;
}

/* crun and runc copy themselves into a sealed memory file and execute that, so that no container can reach
 * the host's binary through /proc/self/exe. Exactly these seals tell them that it was done: once here, not
 * once per sandbox. */
static int sealed_copy(const char *program)
{
    int from STK_AUTO(stk_closep) = open(program, O_RDONLY | O_CLOEXEC);
    int to STK_AUTO(stk_closep) = memfd_create("oci-runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (to < 0)
        to = memfd_create("oci-runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (from < 0 || to < 0 || fchmod(to, 0755) < 0 || !copy(from, to) ||
        fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return -1;
    int sealed = to;
    to = -1;
    return sealed;
}

void stk_oci_seal(stk_oci *oci)
{
    stk_closep(&oci->sealed);
    if (oci->kind != STK_OCI_RUNSC)
        oci->sealed = sealed_copy(oci->program);
    if (oci->sealed < 0)
        snprintf(oci->executed, sizeof(oci->executed), "%s", oci->program);
    else
        snprintf(oci->executed, sizeof(oci->executed), "/proc/%d/fd/%d", getpid(), oci->sealed);
}
