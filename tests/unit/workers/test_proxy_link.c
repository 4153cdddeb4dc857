/* The worker's side of a proxy's control stream, over a socketpair: acknowledged only what is durable,
 * garbage ends it, a callback may free it. */
#include "tests/unit/workers/unit.h"
#include "workers/proxy_link.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

typedef struct peer {
    stk_loop *loop;
    stk_syncer *syncer;
    stk_proxy_link *link;
    int theirs, journal;
    char notes[256];
    bool free_inside; /* the next callback frees the link */
} peer;

static void note(peer *p, const char *what)
{
    size_t n = strlen(p->notes);
    snprintf(p->notes + n, sizeof(p->notes) - n, "%s", what);
    if (!p->free_inside)
        return;
    p->free_inside = false;
    stk_proxy_link_free(STK_TAKE(p->link));
}

static void on_policy(bool ok, int64_t version, const char *detail, void *arg)
{
    char text[64];
    snprintf(text, sizeof(text), "%s%lld%s;", ok ? "ok" : "bad", (long long)version, detail);
    note(arg, text);
}

static void on_record(const stk_egress_record *rec, stk_str json, void *arg)
{
    char text[32];
    snprintf(text, sizeof(text), "r%lld;", (long long)rec->seq);
    note(arg, text);
}

static void on_drained(void *arg)
{
    note(arg, "drained;");
}

static void on_end(void *arg)
{
    note(arg, "end;");
}

static const stk_proxy_link_ops ops = {on_policy, on_record, on_drained, on_end};

static peer *peer_new(void)
{
    peer *p = stk_xcalloc(1, sizeof(*p));
    char path[] = "/tmp/stk-journal-XXXXXX";
    int fds[2];
    stk_err err;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    p->theirs = fds[1];
    p->journal = mkostemp(path, O_APPEND);
    unlink(path);
    if (stk_loop_new(&p->loop, &err) < 0 || stk_syncer_new(p->loop, &p->syncer, &err) < 0 ||
        stk_proxy_link_new(p->loop, p->syncer, fds[0], p->journal, &ops, p, &p->link, &err) < 0)
        fail_msg("%s", err.detail);
    return p;
}

static void peer_free(peer *p)
{
    if (p->link)
        stk_proxy_link_free(p->link);
    stk_syncer_free(p->syncer);
    event_base_loop(stk_loop_base(p->loop), EVLOOP_NONBLOCK);
    stk_loop_free(p->loop);
    if (p->theirs >= 0)
        close(p->theirs);
    close(p->journal);
    free(p);
}

static void turn(peer *p)
{
    struct timeval tv = {.tv_usec = 2000};
    event_base_loopexit(stk_loop_base(p->loop), &tv);
    event_base_loop(stk_loop_base(p->loop), 0);
}

static void until(peer *p, const char *notes)
{
    int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
    while (!strstr(p->notes, notes)) {
        if (stk_mono_now().ns > deadline)
            fail_msg("no %s in %s", notes, p->notes);
        turn(p);
    }
}

static void say(peer *p, const char *text, size_t n)
{
    while (n) {
        ssize_t done = write(p->theirs, text, n);
        if (done < 0)
            turn(p);
        else
            text += done, n -= (size_t)done;
        if (strstr(p->notes, "end;"))
            return;
    }
}

static void say_line(peer *p, const char *line)
{
    say(p, line, strlen(line));
}

/* What the link wrote so far. */
static const char *heard(peer *p)
{
    static char text[4096];
    ssize_t n = read(p->theirs, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static const char *heard_until(peer *p, const char *what)
{
    static char all[8192];
    int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
    all[0] = '\0';
    while (!strstr(all, what)) {
        if (stk_mono_now().ns > deadline)
            fail_msg("no %s in %s", what, all);
        turn(p);
        size_t n = strlen(all);
        snprintf(all + n, sizeof(all) - n, "%s", heard(p));
    }
    return all;
}

static const char *record(int64_t seq, bool first)
{
    static char line[1024];
    snprintf(line, sizeof(line),
             "{\"kind\":\"record\",\"body\":{\"seq\":%lld,\"kind\":\"decision\",\"time\":\"2026-01-01T00:00:"
             "00.000Z\",\"run\":\"\","
             "\"host\":\"a.example\",\"port\":443,\"verdict\":\"allow\",\"reason\":\"allowed\",\"rule\":\"\","
             "\"policy_version\":1,"
             "\"address\":\"\",\"method\":\"CONNECT\",\"bytes_in\":0,\"bytes_out\":0,\"duration_ms\":0%s}}\n",
             (long long)seq, first ? ",\"first\":true" : "");
    return line;
}

static void policies_go_out_whole_and_their_answers_come_back(void **state)
{
    peer *p = peer_new();
    stk_err err;
    assert_int_equal(
        stk_proxy_link_policy(p->link, 7, "run-01hf7yat00k3v5w6x7y8z9a1b2", STK_STR("{\"version\":7}"), &err),
        0);
    const char *line = heard_until(p, "\n");
    assert_non_null(strstr(line, "\"version\":7"));
    assert_non_null(strstr(line, "run-01hf7yat00k3v5w6x7y8z9a1b2"));
    say_line(p, "{\"kind\":\"ready\",\"detail\":\"x\"}\n{\"kind\":\"policy_ok\",\"version\":7}\n");
    say_line(p, "{\"kind\":\"policy_bad\",\"version\":8,\"detail\":\"no\"}\n");
    until(p, "ok7;bad8no;");
    peer_free(p);
}

static void only_first_allows_are_acknowledged_and_after_the_sync(void **state)
{
    peer *p = peer_new();
    say_line(p, record(1, false));
    until(p, "r1;");
    turn(p);
    assert_string_equal(heard(p), "");
    say_line(p, record(2, true));
    const char *line = heard_until(p, "\n");
    assert_non_null(strstr(line, "\"ack\""));
    assert_non_null(strstr(line, "\"seq\":2"));
    peer_free(p);
}

static void many_first_allows_are_made_durable_together(void **state)
{
    peer *p = peer_new();
    size_t acks = 0;
    for (int64_t seq = 1; seq <= 50; seq++)
        say_line(p, record(seq, true));
    const char *all = heard_until(p, "\"seq\":50");
    for (const char *at = all; (at = strstr(at, "\"ack\"")); at++)
        acks++;
    assert_in_range(acks, 1, 49);
    peer_free(p);
}

static void what_cannot_be_made_durable_is_never_acknowledged(void **state)
{
    peer *p = peer_new();
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], p->journal); /* a pipe cannot be synced */
    close(fds[0]);
    close(fds[1]);
    say_line(p, record(1, true));
    until(p, "r1;");
    for (int i = 0; i < 20; i++)
        turn(p);
    assert_string_equal(heard(p), "");
    int file = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
    dup2(file, p->journal); /* it works again: what was lost is lost */
    close(file);
    say_line(p, record(2, true));
    until(p, "r2;");
    for (int i = 0; i < 20; i++)
        turn(p);
    assert_string_equal(heard(p), "");
    peer_free(p);
}

static void a_line_that_does_not_decode_ends_the_link_once(void **state)
{
    static const char *const lines[] = {"\n",
                                        "{}\n",
                                        "x\n",
                                        "{\"kind\":\"dance\"}\n",
                                        "{\"kind\":\"policy\",\"version\":1}\n",
                                        "{\"kind\":\"ack\",\"seq\":1}\n",
                                        "{\"kind\":\"stop\"}\n",
                                        "{\"kind\":\"record\",\"body\":{}}\n",
                                        "{\"kind\":\"record\",\"body\":{\"seq\":-1}}\n",
                                        "{\"kind\":\"drained\",\"x\":1}\n",
                                        "[]\n\n\n{\n"};
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        peer *p = peer_new();
        say_line(p, lines[i]);
        say_line(p, "{\"kind\":\"drained\"}\n");
        until(p, "end;");
        turn(p);
        assert_string_equal(p->notes, "end;");
        assert_false(stk_proxy_link_drain(p->link));
        peer_free(p);
    }
}

static void a_line_without_an_end_is_bounded(void **state)
{
    static char block[65536];
    peer *p = peer_new();
    memset(block, ' ', sizeof(block));
    for (int i = 0; i < 64 && !strstr(p->notes, "end;"); i++)
        say(p, block, sizeof(block));
    until(p, "end;");
    peer_free(p);
}

static void the_end_of_the_stream_is_told_after_its_last_record(void **state)
{
    peer *p = peer_new();
    say_line(p, record(1, false));
    say_line(p, "{\"kind\":\"drained\"}\n");
    close(p->theirs);
    p->theirs = -1;
    until(p, "end;");
    assert_string_equal(p->notes, "r1;drained;end;");
    peer_free(p);
}

static void it_may_be_freed_inside_each_callback(void **state)
{
    static const char *const lines[] = {"{\"kind\":\"policy_ok\",\"version\":7}\n",
                                        "{\"kind\":\"drained\"}\n", "nonsense\n", NULL};
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        peer *p = peer_new();
        p->free_inside = true;
        say_line(p, lines[i] ? lines[i] : record(1, true)); /* with a sync under way */
        say_line(p, "{\"kind\":\"drained\"}\n");
        int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
        while (p->link && stk_mono_now().ns < deadline)
            turn(p);
        assert_null(p->link);
        for (int j = 0; j < 10; j++)
            turn(p);
        peer_free(p);
    }
}

static void a_proxy_that_does_not_read_is_given_up(void **state)
{
    static char policy[500000];
    peer *p = peer_new();
    stk_err err;
    int rc = 0, n = 0;
    memset(policy, ' ', sizeof(policy));
    policy[0] = '{';
    policy[sizeof(policy) - 1] = '}';
    for (; rc == 0 && n < 100; n++)
        rc = stk_proxy_link_policy(p->link, n + 1, "run-01hf7yat00k3v5w6x7y8z9a1b2",
                                   stk_str_n(policy, sizeof(policy)), &err);
    assert_int_equal(rc, -STK_E_CLOSED);
    assert_in_range(n, 4, 12);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_go_out_whole_and_their_answers_come_back),
        cmocka_unit_test(only_first_allows_are_acknowledged_and_after_the_sync),
        cmocka_unit_test(many_first_allows_are_made_durable_together),
        cmocka_unit_test(what_cannot_be_made_durable_is_never_acknowledged),
        cmocka_unit_test(a_line_that_does_not_decode_ends_the_link_once),
        cmocka_unit_test(a_line_without_an_end_is_bounded),
        cmocka_unit_test(the_end_of_the_stream_is_told_after_its_last_record),
        cmocka_unit_test(it_may_be_freed_inside_each_callback),
        cmocka_unit_test(a_proxy_that_does_not_read_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
