/* GET /exists/{path}: links are followed, as far as they stay below the root. */
#include "workers/runtime/paths.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/target.h"
#include <errno.h>
#include <fcntl.h>

static void on_end(stk_exchange *ex)
{
    stk_err err;
    char path[PATH_MAX];
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(8 * PATH_MAX);
    if (stk_target_of(ex, "/exists/", path, &err) < 0) {
        stk_rt_refuse(ex->x, &err);
        return;
    }
    int fd STK_AUTO(stk_closep) = stk_open_beneath(ex->rt->root, path, O_PATH, 0);
    if (fd < 0 && errno == EXDEV) {
        stk_target_errno(EXDEV, &err);
        stk_rt_refuse(ex->x, &err);
        return;
    }
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "path", path);
    stk_jw_kbool(&w, "exists", fd >= 0);
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    stk_http_answer(ex->x, 200, "application/json", "", stk_buf_view(&body));
}

const stk_call stk_call_exists = {.end = on_end};
