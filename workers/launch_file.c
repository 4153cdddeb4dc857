#include "workers/launch_file.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define JOURNAL_MAX ((size_t)64 << 20)

static int path_of(const stk_ctx *ctx, const char *sandbox, const char *ending, char out[256], stk_err *err)
{
    return stk_path(out, 256, err, "%s/%s.%s", ctx->spool, sandbox, ending);
}

int stk_launch_file_write(const stk_ctx *ctx, const stk_audit_row *launch, stk_err *err)
{
    char path[256];
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    int rc = path_of(ctx, launch->sandbox, "launch", path, err);
    if (rc == 0)
        rc = stk_audit_encode(launch, &text, err);
    if (rc < 0)
        return rc;
    int fd STK_AUTO(stk_closep) = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return stk_err_errno(err, errno, "make %s", path);
    rc = stk_fd_write_all(fd, text.p, text.n, err);
    if (rc < 0)
        unlink(path);
    return rc;
}

void stk_launch_file_remove(const stk_ctx *ctx, const char *sandbox)
{
    char path[256];
    if (path_of(ctx, sandbox, "launch", path, NULL) == 0)
        unlink(path);
}

/* What is being published of one sandbox. */
typedef struct emission {
    stk_ctx *ctx;
    char journal[256], launch[256];
    size_t waiting; /* rows on their way */
    void (*done)(void *arg);
    void *arg;
} emission;

static void on_durable(bool durable, void *arg)
{
    emission *em = arg;
    if (--em->waiting)
        return;
    unlink(em->journal);
    unlink(em->launch);
    void (*done)(void *) = em->done;
    void *done_arg = em->arg;
    free(em);
    done(done_arg);
}

static void emit(emission *em, stk_audit_row *row)
{
    em->waiting++;
    stk_row_publish(em->ctx, row, on_durable, em);
    stk_audit_row_done(row);
}

static void emit_records(emission *em, const stk_row_subject *subject, int64_t *ret_last)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(JOURNAL_MAX);
    stk_err err;
    if (stk_file_read(em->journal, &text, &err) < 0)
        return;
    for (size_t at = 0; at < text.n;) {
        const char *end = memchr(text.p + at, '\n', text.n - at);
        if (!end)
            break; /* the last line was being written: it was never acknowledged */
        stk_str line = stk_str_n(text.p + at, (size_t)(end - text.p) - at);
        at += line.n + 1;
        stk_egress_record rec = {0};
        stk_audit_row row;
        if (stk_egress_decode(line, &rec, &err) < 0)
            continue;
        *ret_last = rec.seq;
        if (stk_row_from_record(subject, &rec, line, &row))
            emit(em, &row);
    }
}

static void subject_of(const stk_audit_row *launch, stk_row_subject *ret)
{
    *ret = (stk_row_subject){0};
    memcpy(ret->tenant, launch->tenant, sizeof(ret->tenant));
    memcpy(ret->agent, launch->agent, sizeof(ret->agent));
    memcpy(ret->actor, launch->actor, sizeof(ret->actor));
    memcpy(ret->run, launch->run, sizeof(ret->run));
    memcpy(ret->assignment, launch->assignment, sizeof(ret->assignment));
    memcpy(ret->worker, launch->worker, sizeof(ret->worker));
    memcpy(ret->sandbox, launch->sandbox, sizeof(ret->sandbox));
    memcpy(ret->backend, launch->backend, sizeof(ret->backend));
    memcpy(ret->isolation, launch->isolation, sizeof(ret->isolation));
}

void stk_launch_file_emit(stk_ctx *ctx, const char *journal, const char *sandbox, void (*done)(void *arg),
                          void *arg)
{
    emission *em = stk_xcalloc(1, sizeof(*em));
    *em = (emission){.ctx = ctx, .waiting = 1, .done = done, .arg = arg};
    snprintf(em->journal, sizeof(em->journal), "%s", journal);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_audit_row launch = {0};
    stk_err err;
    if (path_of(ctx, sandbox, "launch", em->launch, &err) == 0 &&
        stk_file_read(em->launch, &text, &err) == 0 &&
        stk_audit_decode(stk_buf_view(&text), &launch, &err) == 0) {
        stk_row_subject subject;
        stk_audit_row row;
        char details[128];
        int64_t last = 0;
        subject_of(&launch, &subject);
        emit(em, &launch);
        emit_records(em, &subject, &last);
        snprintf(details, sizeof(details), "{\"reason\":\"worker_lost\",\"egress_last_seq\":%lld}",
                 (long long)last);
        stk_row_make(&subject, STK_AUDIT_TEARDOWN, 0, stk_str_of(details), &row);
        emit(em, &row);
    }
    stk_audit_row_done(&launch);
    on_durable(true, em);
}

void stk_launch_file_each(const stk_ctx *ctx, void (*fn)(const char *sandbox, void *arg), void *arg)
{
    DIR *dir = opendir(ctx->spool);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        char name[STK_ID_SIZE];
        if (n < 8 || n - 7 >= sizeof(name) || strcmp(entry->d_name + n - 7, ".launch") != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(n - 7), entry->d_name);
        fn(name, arg);
    }
    if (dir)
        closedir(dir);
}
