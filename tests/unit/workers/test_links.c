/* The runtime's links: only who knows id and nonce gets a place, and as many as are asked for. */
#include "proto/message/link.h"
#include "tests/unit/workers/unit.h"
#include "workers/backends/oci/oci.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct hall {
    char dir[32], path[64];
    stk_loop *loop;
    stk_sandbox sbx;
    stk_oci_links *links;
    int completed;
} hall;

static void on_complete(void *arg)
{
    ((hall *)arg)->completed++;
}

static hall *hall_new(int commands)
{
    hall *h = stk_xcalloc(1, sizeof(*h));
    stk_err err;
    snprintf(h->dir, sizeof(h->dir), "/tmp/stk-links-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    snprintf(h->path, sizeof(h->path), "%s/s", h->dir);
    h->sbx = (stk_sandbox){.id = "sbx-right", .nonce = "non-right", .link_control = -1, .link_health = -1};
    assert_int_equal(stk_loop_new(&h->loop, &err), 0);
    if (stk_oci_links_new(h->loop, h->path, &h->sbx, commands, on_complete, h, &h->links, &err) < 0)
        fail_msg("%s", err.detail);
    return h;
}

static void hall_free(hall *h)
{
    if (h->links)
        stk_oci_links_free(h->links);
    int fds[] = {h->sbx.link_control, h->sbx.link_health};
    for (size_t i = 0; i < STK_COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    for (int i = 0; i < h->sbx.nlinks; i++)
        close(h->sbx.link_commands[i]);
    stk_loop_free(h->loop);
    assert_int_equal(access(h->path, F_OK), -1);
    assert_int_equal(rmdir(h->dir), 0);
    free(h);
}

static void turn(hall *h)
{
    for (int i = 0; i < 8; i++)
        event_base_loop(stk_loop_base(h->loop), EVLOOP_NONBLOCK);
}

static int dial(hall *h)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", h->path);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int greet(hall *h, const char *kind, const char *id, const char *nonce)
{
    char line[STK_HELLO_MAX];
    int fd = dial(h);
    assert_true(fd >= 0);
    int n =
        snprintf(line, sizeof(line), "{\"kind\":\"%s\",\"id\":\"%s\",\"nonce\":\"%s\"}\n", kind, id, nonce);
    assert_int_equal(write(fd, line, (size_t)n), n);
    turn(h);
    return fd;
}

static int rightly(hall *h, const char *kind)
{
    return greet(h, kind, "sbx-right", "non-right");
}

static bool hung_up(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static void all_links_together_complete_it_once_and_close_the_door(void **state)
{
    hall *h = hall_new(2);
    int fds[4];
    fds[0] = rightly(h, "command");
    fds[1] = rightly(h, "health");
    fds[2] = rightly(h, "control");
    assert_int_equal(h->completed, 0);
    fds[3] = rightly(h, "command");
    assert_int_equal(h->completed, 1);
    assert_int_equal(h->sbx.nlinks, 2);
    assert_true(h->sbx.link_control >= 0 && h->sbx.link_health >= 0);
    assert_int_equal(dial(h), -1);
    for (size_t i = 0; i < 4; i++)
        close(fds[i]);
    hall_free(h);
}

static void what_follows_the_hello_belongs_to_the_link(void **state)
{
    static const char text[] = "{\"kind\":\"command\",\"id\":\"sbx-right\",\"nonce\":\"non-right\"}\nHTTP";
    hall *h = hall_new(1);
    char got[16] = "";
    int fd = dial(h);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    turn(h);
    assert_int_equal(h->sbx.nlinks, 1);
    assert_int_equal(read(h->sbx.link_commands[0], got, sizeof(got)), 4);
    assert_memory_equal(got, "HTTP", 4);
    close(fd);
    hall_free(h);
}

static void a_hello_in_pieces_is_one_hello(void **state)
{
    static const char line[] = "{\"kind\":\"health\",\"id\":\"sbx-right\",\"nonce\":\"non-right\"}\n";
    hall *h = hall_new(1);
    int fd = dial(h);
    for (size_t i = 0; i + 1 < sizeof(line); i++) {
        assert_int_equal(h->sbx.link_health, -1);
        assert_int_equal(write(fd, line + i, 1), 1);
        turn(h);
    }
    assert_true(h->sbx.link_health >= 0);
    close(fd);
    hall_free(h);
}

static void a_wrong_hello_is_hung_up_on(void **state)
{
    static const struct {
        const char *kind, *id, *nonce;
    } rows[] = {{"control", "sbx-right", "non-wrong"}, {"control", "sbx-wrong", "non-right"},
                {"control", "sbx-right", "non-righ"},  {"control", "sbx-right", "non-right2"},
                {"control", "sbx-righ", "non-right"},  {"door", "sbx-right", "non-right"},
                {"", "sbx-right", "non-right"},        {"control", "", ""},
                {"control", "non-right", "sbx-right"}};
    hall *h = hall_new(1);
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        int fd = greet(h, rows[i].kind, rows[i].id, rows[i].nonce);
        assert_true(hung_up(fd));
        close(fd);
    }
    static const char *const lines[] = {"\n", "{}\n", "GET / HTTP/1.1\r\n\r\n", "\xff\n", "[\"control\"]\n"};
    for (size_t i = 0; i < STK_COUNT(lines); i++) {
        int fd = dial(h);
        assert_true(write(fd, lines[i], strlen(lines[i])) > 0);
        turn(h);
        assert_true(hung_up(fd));
        close(fd);
    }
    assert_int_equal(h->sbx.link_control, -1);
    assert_int_equal(h->sbx.nlinks, 0);
    hall_free(h);
}

static void a_hello_that_is_too_long_is_hung_up_on(void **state)
{
    char text[STK_HELLO_MAX + 1];
    hall *h = hall_new(1);
    int fd = dial(h);
    memset(text, 'x', sizeof(text));
    assert_true(write(fd, text, sizeof(text)) > 0);
    turn(h);
    assert_true(hung_up(fd));
    close(fd);
    hall_free(h);
}

static void a_second_link_of_a_kind_is_hung_up_on(void **state)
{
    hall *h = hall_new(1);
    static const char *const kinds[] = {"control", "health", "command"};
    for (size_t i = 0; i < 2; i++) {
        int first = rightly(h, kinds[i]), second = rightly(h, kinds[i]);
        assert_false(hung_up(first));
        assert_true(hung_up(second));
        close(first);
        close(second);
    }
    hall_free(h);
}

static void who_says_nothing_costs_a_place_and_no_more(void **state)
{
    hall *h = hall_new(1);
    int fds[100];
    for (size_t i = 0; i < STK_COUNT(fds); i++) {
        fds[i] = dial(h);
        turn(h);
    }
    assert_true(hung_up(fds[99]));
    assert_false(hung_up(fds[0]));
    close(fds[0]);
    turn(h);
    int fd = rightly(h, "control");
    assert_true(h->sbx.link_control >= 0);
    close(fd);
    for (size_t i = 1; i < STK_COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    hall_free(h);
}

static void it_can_be_given_up_at_any_time(void **state)
{
    hall *h = hall_new(1);
    int silent = dial(h), known = rightly(h, "health");
    stk_oci_links_free(STK_TAKE(h->links));
    assert_true(hung_up(silent));
    assert_false(hung_up(known)); /* it is the sandbox's by now */
    close(silent);
    close(known);
    hall_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_links_together_complete_it_once_and_close_the_door),
        cmocka_unit_test(what_follows_the_hello_belongs_to_the_link),
        cmocka_unit_test(a_hello_in_pieces_is_one_hello),
        cmocka_unit_test(a_wrong_hello_is_hung_up_on),
        cmocka_unit_test(a_hello_that_is_too_long_is_hung_up_on),
        cmocka_unit_test(a_second_link_of_a_kind_is_hung_up_on),
        cmocka_unit_test(who_says_nothing_costs_a_place_and_no_more),
        cmocka_unit_test(it_can_be_given_up_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
