#include "deploy/standalone/up.h"
#include "deploy/standalone/part.h"
#include "proto/base/fail.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include "workers/worker.h"
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define OVERRIDES_MAX 64
#define HURRY_SECONDS 10 /* after the second signal */
#define PARTS         4  /* in order of starting; they stop in order of `stop_order` */

static const stk_part_ops *const start_order[PARTS] = {&stk_part_audit, &stk_part_scheduler, &stk_part_worker,
                                                       &stk_part_gateway};
static const size_t stop_order[PARTS] = {3, 2, 1, 0};

/* --- files
 * ---------------------------------------------------------------------------------------------------------
 */

const stk_bus_topic stk_standalone_topics[STK_STANDALONE_TOPICS] = {
    {STK_TOPIC_REQUESTS, 4, false}, {STK_TOPIC_ASSIGNMENTS, STK_STANDALONE_LANES, false},
    {STK_TOPIC_EVENTS, 4, false},   {STK_TOPIC_AUDIT, 1, false},
    {STK_TOPIC_CONFIG, 1, true},    {STK_TOPIC_DEAD, 1, false}};

static int open_bus(stk_up *up, stk_err *err)
{
    char path[512];
    int rc = stk_path(path, sizeof(path), err, "%s/bus.db", up->settings.state_dir);
    stk_bus_file_spec spec = {
        .path = path, .topics = stk_standalone_topics, .ntopics = STK_STANDALONE_TOPICS};
    return rc < 0 ? rc : stk_bus_file_open(&spec, &up->bus_file, err);
}

static int open_files(stk_up *up, stk_err *err)
{
    char path[512];
    const char *dir = up->settings.state_dir;
    int rc = stk_mkdirs(dir, 0700, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/lock", dir);
    if (rc == 0)
        rc = stk_lock_file(path, &up->dir_lock, err);
    if (rc < 0)
        return stk_err_wrap(err, "state directory %s", dir);
    rc = stk_path(path, sizeof(path), err, "%s/keys", dir);
    if (rc == 0)
        rc = stk_keyring_create(path, err);
    if (rc == 0)
        rc = stk_keyring_load(path, &up->ring, err);
    if (rc == 0)
        rc = stk_worker_identity(dir, up->worker, &up->worker_lock, err);
    if (rc == 0)
        rc = open_bus(up, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/state.db", dir);
    if (rc == 0)
        rc = stk_state_file_open(path, &up->state_file, err);
    if (rc == 0)
        rc = stk_path(path, sizeof(path), err, "%s/audit.db", dir);
    return rc < 0 ? rc : stk_store_file_open(path, NULL, &up->store_file, err);
}

static void close_files(stk_up *up)
{
    if (up->store_file)
        stk_store_file_close(up->store_file);
    if (up->state_file)
        stk_state_file_close(up->state_file);
    if (up->bus_file)
        stk_bus_file_close(up->bus_file);
    if (up->ring)
        stk_keyring_free(up->ring);
    if (up->worker_lock >= 0)
        close(up->worker_lock);
    if (up->dir_lock >= 0)
        close(up->dir_lock);
}

/* --- stopping
 * ------------------------------------------------------------------------------------------------------- */

static void stop_next(stk_up *up)
{
    while (up->stopping < PARTS && !up->parts[stop_order[up->stopping]].opened)
        up->stopping++;
    if (up->stopping == PARTS)
        stk_loop_stop(up->main_loop);
    else
        stk_part_stop(&up->parts[stop_order[up->stopping]], up->signals > 1);
}

void stk_up_part_quiet(void *arg)
{
    stk_part *part = arg;
    stk_up *up = part->up;
    if (part != &up->parts[stop_order[up->stopping]])
        return;
    up->stopping++;
    stop_next(up);
}

/* What keeps a part from ending is something that can't be made durable, such as on a full disk. The next
 * start settles it, as after any kill. */
static void on_late(evutil_socket_t fd, short what, void *arg)
{
    stk_log(STK_LOG_ERROR, NULL,
            "not everything could be made durable in %d s; the next start goes on with it", HURRY_SECONDS);
    _exit(1);
}

static void on_signal(evutil_socket_t sig, short what, void *arg)
{
    stk_up *up = arg;
    up->signals++;
    if (up->signals == 2)
        event_base_once(stk_loop_base(up->main_loop), -1, EV_TIMEOUT, on_late, up,
                        &(struct timeval){.tv_sec = HURRY_SECONDS});
    stk_log_info(NULL, up->signals == 1 ? "stopping: running runs may end first (once more to hurry)"
                                        : "stopping now");
    if (up->signals == 1)
        stop_next(up);
    else if (up->stopping < PARTS)
        stk_part_stop(&up->parts[stop_order[up->stopping]], true);
}

/* --- starting
 * -------------------------------------------------------------------------------------------------------- */

static int start_part(stk_up *up, size_t i)
{
    up->parts[i] = (stk_part){.ops = start_order[i], .up = up};
    up->metrics[i] = STK_BUF(65536);
    int rc = stk_part_start(&up->parts[i], &up->failure);
    if (rc < 0) {
        up->failed = true;
        stk_loop_stop(up->main_loop);
    }
    return rc;
}

void stk_up_part_opened(void *arg)
{
    stk_part *part = arg;
    stk_up *up = part->up;
    size_t i = (size_t)(part - up->parts);
    if (!part->opened) {
        up->failed = true;
        stk_loop_stop(up->main_loop);
    } else if (i + 1 < PARTS && !up->signals) {
        start_part(up, i + 1);
    }
}

void stk_up_part_ready(void *arg)
{
    stk_up *up = ((stk_part *)arg)->up;
    bool all = true;
    pthread_mutex_lock(&up->mutex);
    for (size_t i = 0; i < PARTS; i++)
        all = all && up->ready[i];
    pthread_mutex_unlock(&up->mutex);
    if (!all || up->announced)
        return;
    up->announced = true;
    bool unix_socket = strncmp(up->address, "unix:", 5) == 0;
    printf("ready %s%s\n", unix_socket ? "" : "http://", up->address);
    fflush(stdout);
}

static int run(stk_up *up)
{
    struct event_base *base = stk_loop_base(up->main_loop);
    struct event *term = evsignal_new(base, SIGTERM, on_signal, up);
    struct event *interrupt = evsignal_new(base, SIGINT, on_signal, up);
    event_add(term, NULL);
    event_add(interrupt, NULL);
    if (start_part(up, 0) == 0)
        stk_loop_run(up->main_loop);
    for (size_t i = PARTS; i-- > 0;)
        stk_part_join(&up->parts[i]);
    event_free(term);
    event_free(interrupt);
    for (size_t i = 0; i < PARTS; i++)
        stk_buf_done(&up->metrics[i]);
    if (up->failed)
        fprintf(stderr, "stockade up: %s\n", up->failure.detail);
    return up->failed ? 1 : 0;
}

/* --- command line
 * ------------------------------------------------------------------------------------------------------ */

static void usage(FILE *to)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_conf_reference(stk_settings_table, &text);
    fprintf(to,
            "usage: stockade up [--config FILE] [--state-dir DIR] [--listen ADDR] [--auth tokens|none] "
            "[--set KEY=VALUE]...\n"
            "\n"
            "Gateway, scheduler, worker and audit consumer in one process, with embedded SQLite. Prints "
            "\"ready URL\" on\n"
            "stdout when runs are accepted. SIGTERM drains; a second one hurries.\n"
            "\n"
            "  --config FILE     YAML file with the keys below\n"
            "  --set KEY=VALUE   overrides one key; the other flags are short forms of state_dir, "
            "http.listen, http.auth\n"
            "\nConfiguration:\n\n%s",
            text.p ? text.p : "");
}

static bool add_override(char **list, size_t *n, const char *key, const char *value)
{
    if (*n + 1 >= OVERRIDES_MAX)
        return false;
    stk_buf text = STK_BUF(65536);
    stk_buf_fmt(&text, "%s%s", key, value);
    list[(*n)++] = stk_buf_take(&text, NULL);
    list[*n] = NULL;
    return true;
}

/* 0 = go on, else the exit status + 1. */
static int parse(int argc, char **argv, const char **ret_file, char **overrides)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"state-dir", required_argument, NULL, 'd'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"auth", required_argument, NULL, 'a'},
                                            {"set", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    size_t n = 0;
    bool ok = true;
    optind = 1;
    opterr = 0;
    for (int c; ok && (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == 'c')
            *ret_file = optarg;
        else if (c == 'd')
            ok = add_override(overrides, &n, "state_dir=", optarg);
        else if (c == 'l')
            ok = add_override(overrides, &n, "http.listen=", optarg);
        else if (c == 'a')
            ok = add_override(overrides, &n, "http.auth=", optarg);
        else if (c == 's')
            ok = add_override(overrides, &n, "", optarg);
        else if (c == 'h') {
            usage(stdout);
            return 1;
        } else {
            fprintf(stderr, "stockade up: %s %s; see stockade up --help\n",
                    c == ':' ? "a value is missing after" : "no option", argv[optind - 1]);
            return 3;
        }
    }
    if (ok && optind == argc)
        return 0;
    fprintf(stderr, "stockade up: %s; see stockade up --help\n",
            ok ? "takes no arguments" : "too many overrides");
    return 3;
}

static int with_settings(stk_up *up)
{
    stk_err err;
    stk_log_setup("stockade", up->settings.log_format == 1, (stk_level)up->settings.log_level);
    signal(SIGPIPE, SIG_IGN);
    umask(0022); /* modes are said where files are made; the mapped root of a sandbox must reach its own */
    int rc = stk_loop_new(&up->main_loop, &err);
    if (rc == 0)
        rc = open_files(up, &err);
    int status = 1;
    if (rc < 0)
        fprintf(stderr, "stockade up: %s\n", err.detail);
    else
        status = run(up);
    close_files(up);
    if (up->main_loop)
        stk_loop_free(up->main_loop);
    return status;
}

int stk_verb_up(int argc, char **argv)
{
    char *overrides[OVERRIDES_MAX] = {NULL};
    const char *file = NULL;
    stk_err err;
    int status = parse(argc, argv, &file, overrides) - 1;
    if (status < 0) {
        stk_up *up = stk_xcalloc(1, sizeof(*up));
        pthread_mutex_init(&up->mutex, NULL);
        up->dir_lock = up->worker_lock = -1;
        status = 2;
        if (stk_failpoints_init(&err) < 0 ||
            stk_settings_load(file, (const char *const *)overrides, &up->settings, &err) < 0)
            fprintf(stderr, "stockade up: %s\n", err.detail);
        else
            status = with_settings(up);
        stk_settings_done(&up->settings);
        pthread_mutex_destroy(&up->mutex);
        free(up);
    }
    for (size_t i = 0; overrides[i]; i++)
        free(overrides[i]);
    return status;
}
