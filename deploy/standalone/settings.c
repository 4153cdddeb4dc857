#include "deploy/standalone/settings.h"
#include "proto/base/crypto.h"
#include "proto/base/state_dir.h"
#include <linux/magic.h>
#include <stdio.h>
#include <sys/statfs.h>

static const char *const auth_words[] = {"tokens", "none", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const level_words[] = {"debug", "info", "warn", "error", NULL};

#define AT(member) offsetof(stk_settings, member)
#define SEC(n)     ((int64_t)(n)*1000000000)

const stk_conf stk_settings_table[] = {
    {"state_dir", STK_C_TEXT, AT(state_dir), "",
     .help = "Where bus, state, audit and keys are kept (mode 0700). Default: $STOCKADE_STATE_DIR, else "
             "/var/lib/stockade as root, else $XDG_STATE_HOME/stockade."},
    {"run_dir", STK_C_TEXT, AT(run_dir), "",
     .help =
         "Short-lived files of sandboxes, best on a tmpfs; at most 60 bytes. Default: below /run/stockade "
         "as root (/dev/shm where /run is on a disk), else below $XDG_RUNTIME_DIR."},
    {"http.listen", STK_C_TEXT, AT(listen), "127.0.0.1:8700",
     .help = "Address of the API: IP:PORT or unix:/path."},
    {"http.auth", STK_C_ENUM, AT(auth), "tokens", .words = auth_words,
     .help = "tokens: bearer tokens are needed; none: nothing is asked, only on loopback or a Unix socket."},
    {"http.body_max", STK_C_SIZE, AT(body_max), "1MiB", 1024, 3 << 20,
     .help = "Largest request body; larger ones are answered 413."},
    {"http.wait_default", STK_C_SPAN, AT(wait_default), "60s", SEC(1), SEC(600),
     .help = "How long a waiting call waits before it answers 202."},
    {"log.format", STK_C_ENUM, AT(log_format), "text", .words = format_words,
     .help = "Log lines on stderr as text or JSON."},
    {"log.level", STK_C_ENUM, AT(log_level), "info", .words = level_words,
     .help = "Least level that is logged."},
    {"worker.slots", STK_C_INT, AT(slots), "0", 0, 10000, .help = "Runs at once; 0 = twice the processors."},
    {"worker.runtime", STK_C_TEXT, AT(runtime), "",
     .help = "OCI runtime: runsc, crun, runc or a path; empty = the strongest that works."},
    {"worker.rootfs", STK_C_TEXT, AT(rootfs), "",
     .help = "Root file system of sandboxes; empty = the host's /usr, read-only."},
    {"worker.cgroup", STK_C_TEXT, AT(cgroup), "stockade", .help = "Parent cgroup of all sandboxes."},
    {"worker.lease", STK_C_SPAN, AT(lease), "10s", SEC(1), SEC(600),
     .help = "A worker that is silent for this long is given up."},
    {"worker.heartbeat", STK_C_SPAN, AT(heartbeat), "2s", SEC(1) / 10, SEC(60),
     .help = "How often a worker renews its lease."},
    {"worker.drain", STK_C_SPAN, AT(drain), "30s", 0, SEC(3600),
     .help = "On SIGTERM: how long running runs may go on."},
    {"tenant.queued_cap", STK_C_INT, AT(queued_cap), "100000", 0, 1000000,
     .help = "Unfinished runs of a tenant; 0 = no cap. Over it: 429."},
    {"tenant.running_cap", STK_C_INT, AT(running_cap), "0", 0, 1000000,
     .help = "Runs of a tenant at once; 0 = no cap."},
    {"scheduler.max_attempts", STK_C_INT, AT(max_attempts), "3", 1, 100,
     .help = "How often a run is tried when sandboxes fail before the command started."},
    {"egress.resolvers", STK_C_LIST, AT(resolvers), NULL,
     .help = "Name servers (IP:PORT) the egress proxies ask; empty = those of /etc/resolv.conf."},
    {"egress.internal", STK_C_RAW, AT(internal), NULL,
     .help = "Internal networks that sandboxes may reach: a list of {cidr, hosts, ports}."},
    STK_CONF_END};

static int check(const void *config, stk_err *err)
{
    const stk_settings *s = config;
    if (s->lease.ns <= 3 * s->heartbeat.ns)
        return stk_err_set(err, STK_E_CONFIG,
                           "worker.lease must be longer than three times worker.heartbeat");
    if (*s->state_dir && *s->state_dir != '/')
        return stk_err_set(err, STK_E_CONFIG, "state_dir must be an absolute path");
    if (*s->run_dir && (*s->run_dir != '/' || strlen(s->run_dir) > 60))
        return stk_err_set(err, STK_E_CONFIG, "run_dir must be an absolute path of at most 60 bytes");
    if (s->resolvers.n > 3)
        return stk_err_set(err, STK_E_CONFIG, "egress.resolvers: at most three");
    return 0;
}

static char *text_of(const char *fmt, const char *a, const char *b)
{
    char text[512];
    snprintf(text, sizeof(text), "%s%s%s", a, fmt, b);
    return stk_xstrdup(text);
}

static bool is_tmpfs(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* One per state directory, so that several instances on a host never meet. On a disk, names that come and go
 * all the time cost ext4 a fifth of a cold run. */
static char *default_run_dir(const char *state_dir)
{
    uint8_t digest[STK_SHA256];
    char name[9];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    stk_sha256_of(stk_str_of(state_dir), digest);
    stk_hex(digest, 4, name);
    if (geteuid() == 0 && !is_tmpfs("/run") && is_tmpfs("/dev/shm"))
        return text_of("-", "/dev/shm/stockade", name);
    if (geteuid() == 0)
        return text_of("/", "/run/stockade", name);
    if (runtime && *runtime == '/')
        return text_of("/stockade-", runtime, name);
    char base[64];
    snprintf(base, sizeof(base), "/tmp/stockade-%u", (unsigned)geteuid());
    return text_of("-", base, name);
}

int stk_settings_load(const char *file, const char *const *overrides, stk_settings *ret, stk_err *err)
{
    *ret = (stk_settings){0};
    int rc = stk_conf_load(stk_settings_table, file, overrides, check, ret, err);
    if (rc < 0)
        return rc;
    if (!*ret->state_dir) {
        char dir[4096];
        rc = stk_state_dir_default(dir, sizeof(dir), err);
        if (rc < 0)
            return rc;
        free(ret->state_dir);
        ret->state_dir = stk_xstrdup(dir);
        if (*ret->state_dir != '/')
            return stk_err_set(err, STK_E_CONFIG, "$STOCKADE_STATE_DIR must be an absolute path");
    }
    if (!*ret->run_dir) {
        free(ret->run_dir);
        ret->run_dir = default_run_dir(ret->state_dir);
    }
    return 0;
}

void stk_settings_done(stk_settings *settings)
{
    stk_conf_done(stk_settings_table, settings);
}
