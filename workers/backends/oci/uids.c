#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "workers/backends/oci/oci.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>

/* Root: ranges of 65536 ids from 0x10000000 up, each guarded by one byte of a lock file, so that all workers
 * of a host stay disjoint and a killed one gives its ranges back. */
#define LOCK_FILE   "/run/stockade.uids"
#define FIRST_ID    0x10000000u
#define ROOT_RANGES 24000u

struct stk_uids {
    int lock; /* -1: ordinary user, one shared range */
    uint32_t uid, gid;
    bool held[ROOT_RANGES]; /* by us: locks of one open file never conflict with each other */
};

static int own_range(const char *file, const char *user, uint32_t id, uint32_t *ret_first)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_err ignored;
    char number[16];
    snprintf(number, sizeof(number), "%u", id);
    if (stk_file_read(file, &text, &ignored) < 0 || text.n == 0)
        return -STK_E_NOT_FOUND;
    for (char *line = text.p; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char name[64];
        unsigned first, count;
        if (sscanf(line, "%63[^:]:%u:%u", name, &first, &count) == 3 && count >= STK_OCI_UID_COUNT &&
            (strcmp(name, user) == 0 || strcmp(name, number) == 0)) {
            *ret_first = first;
            return 0;
        }
    }
    return -STK_E_NOT_FOUND;
}

static int ordinary_user(stk_uids *uids, stk_err *err)
{
    struct passwd *pw = getpwuid(geteuid());
    const char *user = pw ? pw->pw_name : "";
    if (own_range("/etc/subuid", user, geteuid(), &uids->uid) < 0 ||
        own_range("/etc/subgid", user, geteuid(), &uids->gid) < 0)
        return stk_err_set(err, STK_E_BACKEND, "/etc/subuid and /etc/subgid give user %s no range of %d ids",
                           user, STK_OCI_UID_COUNT);
    return 0;
}

int stk_uids_new(stk_uids **ret, stk_err *err)
{
    stk_uids *uids = stk_xcalloc(1, sizeof(*uids));
    uids->lock = -1;
    int rc = 0;
    if (geteuid() != 0) {
        rc = ordinary_user(uids, err);
    } else {
        uids->lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (uids->lock < 0)
            rc = stk_err_errno(err, errno, "open " LOCK_FILE);
    }
    if (rc < 0) {
        stk_uids_free(uids);
        return rc;
    }
    *ret = uids;
    return 0;
}

static bool set_lock(int fd, uint32_t range, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = range, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

int stk_uids_take(stk_uids *uids, uint32_t *ret_uid, uint32_t *ret_gid, stk_err *err)
{
    if (uids->lock < 0) {
        *ret_uid = uids->uid;
        *ret_gid = uids->gid;
        return 0;
    }
    uint32_t start;
    stk_random(&start, sizeof(start));
    for (uint32_t i = 0; i < ROOT_RANGES; i++) {
        uint32_t range = (start % ROOT_RANGES + i) % ROOT_RANGES;
        if (uids->held[range] || !set_lock(uids->lock, range, F_WRLCK))
            continue;
        uids->held[range] = true;
        *ret_uid = *ret_gid = FIRST_ID + range * STK_OCI_UID_COUNT;
        return 0;
    }
    return stk_err_set(err, STK_E_BUSY, "all %u uid ranges of this host are in use", ROOT_RANGES);
}

void stk_uids_give(stk_uids *uids, uint32_t uid)
{
    if (uids->lock < 0 || uid < FIRST_ID)
        return;
    uint32_t range = (uid - FIRST_ID) / STK_OCI_UID_COUNT;
    uids->held[range] = false;
    set_lock(uids->lock, range, F_UNLCK);
}

void stk_uids_free(stk_uids *uids)
{
    if (uids->lock >= 0)
        close(uids->lock);
    free(uids);
}
