#include "proto/message/env_seal.h"
#include "proto/policy/weaken.h"
#include "workers/job_impl.h"
#include <stdio.h>

#define RESULT_MAX ((size_t)1 << 20) /* what brokers take without being told */

/* --- POST /execute
 * --------------------------------------------------------------------------------------------- */

/* The agent's configured variables first, then the request's, which win. */
static int write_env(stk_job *job, stk_jw *w, stk_err *err)
{
    const stk_agent_config *agent = stk_view_agent(job->ctx->view, job->req.tenant, job->req.agent, err);
    stk_jw_key(w, "env");
    stk_jw_object(w);
    for (size_t i = 0; agent && i < agent->env.n; i++) {
        const stk_pair *pair = &agent->env.v[i];
        stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(STK_ARG_MAX_ALL);
        if (stk_map_get(&job->secret.env, stk_bytes_view(&pair->key)))
            continue;
        int rc = stk_env_open(job->ctx->ring, job->req.tenant, job->req.agent, stk_bytes_view(&pair->key),
                              stk_bytes_view(&pair->value), &clear, err);
        if (rc < 0)
            return rc;
        stk_jw_key_str(w, stk_bytes_view(&pair->key));
        stk_jw_str(w, stk_buf_view(&clear));
    }
    for (size_t i = 0; i < job->secret.env.n; i++) {
        stk_jw_key_str(w, stk_bytes_view(&job->secret.env.v[i].key));
        stk_jw_str(w, stk_bytes_view(&job->secret.env.v[i].value));
    }
    stk_jw_close(w, '}');
    return 0;
}

int stk_job_execute_body(stk_job *job, stk_buf *out, stk_err *err)
{
    const stk_run_secret *secret = &job->secret;
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_key(&w, "command");
    stk_jw_array(&w);
    for (size_t i = 0; i < secret->command.n; i++)
        stk_jw_str(&w, stk_bytes_view(&secret->command.v[i]));
    stk_jw_close(&w, ']');
    int rc = write_env(job, &w, err);
    if (rc < 0)
        return rc;
    stk_jw_kdouble(&w, "timeout_seconds", stk_span_sec(job->req.timeout));
    if (*secret->cwd)
        stk_jw_ktext(&w, "cwd", secret->cwd);
    if (secret->stdin_data.set) {
        stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_BODY_MAX);
        if (stk_base64_encode(&text, stk_bytes_view(&secret->stdin_data)) < 0)
            return stk_err_set(err, STK_E_TOO_LARGE, "stdin is too long");
        stk_jw_kstr(&w, "stdin_base64", stk_buf_view(&text));
    }
    stk_jw_kint(&w, "max_output_bytes", STK_OUTPUT_MAX - STK_OUTPUT_MARK);
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, err);
}

/* --- the proxy's policy
 * ------------------------------------------------------------------------------------------ */

int stk_job_policy_text(stk_job *job, stk_buf *out, int64_t *ret_version, stk_err *err)
{
    static const stk_agent_config nothing = {.name = ""};
    const stk_tenant_view *tenant = stk_view_tenant(job->ctx->view, job->req.tenant);
    const stk_agent_config *agent = stk_view_agent(job->ctx->view, job->req.tenant, job->req.agent, err);
    static const stk_org_doc no_org;
    *ret_version = tenant ? tenant->sandbox_version + tenant->org_version : 1;
    if (*ret_version < 1)
        *ret_version = 1;
    /* Unlisted while it runs: nothing is allowed any more. */
    return stk_policy_document(agent ? agent : &nothing, tenant ? &tenant->org : &no_org,
                               stk_bytes_view(&job->ctx->internal), *ret_version, out, err);
}

/* --- audit details
 * ------------------------------------------------------------------------------------------------ */

/* The executable's name and a keyed hash of the whole command: which one it was, without saying it. */
void stk_job_launch_details(stk_job *job, stk_buf *out)
{
    stk_buf whole STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_ARG_MAX_ALL);
    uint8_t hash[STK_SHA256];
    char hex[2 * STK_SHA256 + 1];
    for (size_t i = 0; i < job->secret.command.n; i++) {
        stk_buf_str(&whole, stk_bytes_view(&job->secret.command.v[i]));
        stk_buf_byte(&whole, '\0');
    }
    stk_keyed_hash(job->ctx->ring, "audit.command", stk_buf_view(&whole), hash);
    stk_hex(hash, sizeof(hash), hex);
    stk_str program = job->secret.command.n ? stk_bytes_view(&job->secret.command.v[0]) : STK_STR("");
    const char *slash = program.n ? memrchr(program.p, '/', program.n) : NULL;
    if (slash)
        program = stk_str_n(slash + 1, (size_t)(program.p + program.n - slash - 1));
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_kstr(&w, "executable", stk_str_n(program.p, stk_min(program.n, 255)));
    stk_jw_kint(&w, "arguments", (int64_t)job->secret.command.n);
    stk_jw_ktext(&w, "command_hash", hex);
    stk_jw_kint(&w, "attempt", job->asg.attempt);
    stk_jw_kbool(&w, "warm", job->warm);
    stk_jw_kdouble(&w, "timeout_seconds", stk_span_sec(job->req.timeout));
    stk_jw_kint(&w, "config_version", job->req.config_version);
    stk_jw_ktext(&w, "runtime",
                 job->box && stk_box_sandbox(job->box) ? stk_box_sandbox(job->box)->runtime : "");
    stk_jw_close(&w, '}');
}

/* What the runtime counted, or, when it could not say (cancelled, lost), what came here. */
static int64_t produced(const stk_job *job, int stream)
{
    int64_t counted = stream ? job->end.stderr_bytes : job->end.stdout_bytes;
    int64_t came = (int64_t)job->out[stream].kept.n + job->out[stream].left_out;
    return counted ? counted : came;
}

void stk_job_teardown_details(stk_job *job, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "reason", job->giving_back ? "requeued" : stk_reason_text(job->reason));
    if (*job->detail)
        stk_jw_ktext(&w, "detail", job->detail);
    if (job->started) {
        stk_jw_kint(&w, "exit_code", job->end.exit_code);
        stk_jw_kint(&w, "signal", job->end.signal);
        stk_jw_kint(&w, "duration_ms", job->end.duration_ms);
        stk_jw_kint(&w, "stdout_bytes", produced(job, 0));
        stk_jw_kint(&w, "stderr_bytes", produced(job, 1));
    }
    stk_jw_kint(&w, "egress_allowed", job->evidence.allowed);
    stk_jw_kint(&w, "egress_denied", job->evidence.denied);
    stk_jw_kint(&w, "egress_last_seq", job->evidence.last_seq);
    if (job->lost_race)
        stk_jw_kbool(&w, "late", true);
    stk_jw_close(&w, '}');
}

/* --- stk.events
 * ------------------------------------------------------------------------------------------------------ */

static void fill_event(const stk_job *job, const char *kind, stk_event *ev)
{
    ev->v = STK_MESSAGE_VERSION;
    snprintf(ev->kind, sizeof(ev->kind), "%s", kind);
    memcpy(ev->run, job->asg.run, sizeof(ev->run));
    memcpy(ev->tenant, job->subject.tenant, sizeof(ev->tenant));
    memcpy(ev->agent, job->subject.agent, sizeof(ev->agent));
    memcpy(ev->assignment, job->asg.assignment, sizeof(ev->assignment));
    memcpy(ev->worker, job->ctx->worker, sizeof(ev->worker));
    memcpy(ev->sandbox, job->subject.sandbox, sizeof(ev->sandbox));
    ev->attempt = job->asg.attempt;
    snprintf(ev->reason, sizeof(ev->reason), "%s", stk_reason_text(job->reason));
    memcpy(ev->detail, job->detail, sizeof(ev->detail));
    ev->exit_code = job->end.exit_code;
    ev->signal = job->end.signal;
    ev->timed_out = job->end.timed_out;
    ev->oom_killed = job->end.oom_killed;
    ev->truncated = job->end.truncated || job->out[0].left_out || job->out[1].left_out;
    ev->stdout_bytes = produced(job, 0);
    ev->stderr_bytes = produced(job, 1);
    memcpy(ev->backend, job->subject.backend, sizeof(ev->backend));
    memcpy(ev->isolation, job->subject.isolation, sizeof(ev->isolation));
    ev->warm = job->warm;
    ev->submitted = job->req.submitted;
    ev->started = job->started ? job->begun : (stk_wall){0};
    ev->finished = job->ended;
    ev->duration = stk_ms(job->end.duration_ms);
    if (!job->end.duration_ms && job->executing) /* the runtime did not live to tell it */
        ev->duration = stk_ns(job->ended.ns > job->begun.ns ? job->ended.ns - job->begun.ns : 0);
    memcpy(ev->traceparent, job->req.traceparent, sizeof(ev->traceparent));
    stk_map_copy(&ev->labels, &job->req.labels);
    stk_evidence_finish(&job->evidence, ev);
}

/* The end of it: that is what is shown. */
static stk_str last_part(const stk_output *output, size_t most, bool *ret_cut)
{
    stk_str kept = stk_buf_view(&output->kept);
    size_t skip = kept.n > most ? kept.n - most : 0;
    *ret_cut = *ret_cut || skip;
    return skip ? stk_str_n(kept.p + skip, most) : kept;
}

static int event_text(stk_job *job, const char *kind, size_t most, stk_buf *out, stk_err *err)
{
    stk_event ev STK_AUTO(stk_event_done) = {0};
    int rc = 0;
    fill_event(job, kind, &ev);
    if (most && job->started) {
        stk_result_secret secret = {0};
        stk_bytes_set(&secret.stdout_data, last_part(&job->out[0], most, &ev.truncated));
        stk_bytes_set(&secret.stderr_data, last_part(&job->out[1], most, &ev.truncated));
        if (job->secret.collect.n) {
            stk_buf files STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
            stk_stage_write(job, &files);
            stk_bytes_set(&secret.files, stk_buf_view(&files));
            ev.files = (int64_t)job->secret.collect.n;
        }
        rc = stk_event_seal(&ev, &secret, job->ctx->ring, err);
        stk_result_secret_done(&secret);
    }
    return rc < 0 ? rc : stk_event_encode(&ev, out, err);
}

/* Much output beside many files can outgrow a record: then less of it is kept, never none of the verdict. */
int stk_job_event_text(stk_job *job, const char *kind, bool seal, stk_buf *out, stk_err *err)
{
    static const size_t kept[] = {SIZE_MAX, STK_OUTPUT_MAX / 4, STK_OUTPUT_MAX / 32, 0};
    int rc = -1;
    for (size_t i = seal ? 0 : STK_COUNT(kept) - 1; rc < 0 && i < STK_COUNT(kept); i++) {
        stk_buf_reset(out);
        rc = event_text(job, kind, kept[i], out, err);
        if (rc == 0 && kept[i] && out->n > RESULT_MAX)
            rc = stk_err_set(err, STK_E_LIMIT, "the result is too large");
    }
    return rc;
}
