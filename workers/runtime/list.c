/* GET /list/{path}: a directory's entries as a JSON array, streamed, in the directory's own order. */
#include "workers/runtime/names.h"
#include "workers/runtime/paths.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/target.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define BLOCK     32768
#define ONE_TURN  1024 /* entries, then others have a turn */
#define ENTRY_MAX 8192

typedef struct listing {
    stk_exchange *ex;
    int fd;
    char *block; /* of getdents64 */
    size_t at, n;
    bool comma, last;
    stk_buf out;
    struct event *again;
} listing;

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return "symlink";
    case S_IFIFO:
        return "fifo";
    case S_IFSOCK:
        return "socket";
    case S_IFBLK:
    case S_IFCHR:
        return "device";
    default:
        return NULL;
    }
}

/* Clients of the upstream runtime know two types only, so all else is a "file" whose "kind" says more. */
static void put_entry(listing *l, const struct dirent64 *e)
{
    stk_buf name STK_AUTO(stk_buf_done) = STK_BUF(1024);
    struct stat st = {.st_mode = e->d_type == DT_DIR ? S_IFDIR : S_IFREG};
    int failed = fstatat(l->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
    bool escaped = stk_name_escape(stk_str_of(e->d_name), &name);
    const char *kind = kind_of(st.st_mode);
    if (l->comma)
        stk_buf_byte(&l->out, ',');
    l->comma = true;
    stk_jw w;
    stk_jw_init(&w, &l->out);
    stk_jw_object(&w);
    stk_jw_kstr(&w, "name", stk_buf_view(&name));
    stk_jw_kint(&w, "size", st.st_size);
    stk_jw_ktext(&w, "type", S_ISDIR(st.st_mode) ? "directory" : "file");
    stk_jw_kdouble(&w, "mod_time", (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9);
    if (escaped)
        stk_jw_kbool(&w, "escaped", true);
    if (kind)
        stk_jw_ktext(&w, "kind", kind);
    if (failed)
        stk_jw_ktext(&w, "error", strerrordesc_np(failed));
    stk_jw_close(&w, '}');
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* False at the end of the directory. One that can't be read on ends there too. */
static bool next_entry(listing *l)
{
    if (l->at == l->n) {
        ssize_t n = getdents64(l->fd, l->block, BLOCK);
        l->at = 0;
        l->n = n > 0 ? (size_t)n : 0;
        if (n <= 0)
            return false;
    }
    const struct dirent64 *e = (const struct dirent64 *)(const void *)(l->block + l->at);
    l->at += e->d_reclen;
    if (!is_dots(e->d_name))
        put_entry(l, e);
    return true;
}

static bool send_out(listing *l)
{
    bool room = stk_http_write(l->ex->x, stk_buf_view(&l->out));
    stk_buf_reset(&l->out);
    return room;
}

static void pump(listing *l)
{
    for (size_t i = 0; !l->last; i++) {
        if (i == ONE_TURN) {
            struct timeval soon = {0, 0};
            evtimer_add(l->again, &soon);
            break;
        }
        if (!next_entry(l)) {
            l->last = true;
            stk_buf_byte(&l->out, ']');
        }
        if (l->out.n >= BLOCK && !send_out(l))
            return;
    }
    if (l->out.n)
        send_out(l);
    if (l->last)
        stk_http_end(l->ex->x);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    pump(arg);
}

static int open_dir(stk_exchange *ex, int *ret_fd, stk_err *err)
{
    char path[PATH_MAX];
    int rc = stk_target_of(ex, "/list/", path, err);
    if (rc < 0)
        return rc;
    int fd = stk_open_beneath(ex->rt->root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    int why = errno;
    if (fd < 0 && (why == ENOTDIR || why == ELOOP)) { /* a link that leaves the root is told apart */
        int link STK_AUTO(stk_closep) = stk_open_beneath(ex->rt->root, path, O_PATH, 0);
        why = link < 0 && errno == EXDEV ? EXDEV : ENOTDIR;
    }
    if (fd < 0 && (why == ENOENT || why == ENOTDIR))
        return stk_err_set(err, STK_E_NOT_FOUND, "Path is not a directory");
    if (fd < 0)
        return stk_target_errno(why, err);
    *ret_fd = fd;
    return 0;
}

static void on_end(stk_exchange *ex)
{
    stk_err err;
    int fd = -1;
    if (open_dir(ex, &fd, &err) < 0) {
        stk_rt_refuse(ex->x, &err);
        return;
    }
    listing *l = stk_xcalloc(1, sizeof(*l));
    *l = (listing){.ex = ex, .fd = fd, .out = STK_BUF(BLOCK + ENTRY_MAX)};
    l->block = stk_xcalloc(1, BLOCK);
    l->again = evtimer_new(ex->rt->base, on_again, l);
    ex->state = l;
    stk_http_start(ex->x, 200, "application/json", "", UINT64_MAX);
    stk_buf_byte(&l->out, '[');
    pump(l);
}

static void on_writable(stk_exchange *ex)
{
    listing *l = ex->state;
    if (l && !l->last && !evtimer_pending(l->again, NULL))
        pump(l);
}

static void on_done(stk_exchange *ex, bool gone)
{
    listing *l = ex->state;
    if (!l)
        return;
    event_free(l->again);
    close(l->fd);
    stk_buf_done(&l->out);
    free(l->block);
    free(l);
}

const stk_call stk_call_list = {.end = on_end, .writable = on_writable, .done = on_done};
