/* cmocka in the one way the tests of this folder use it. */
#ifndef STK_TEST_EGRESS_PROXY_UNIT_H
#define STK_TEST_EGRESS_PROXY_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "egress-proxy/decide.h"
#include <arpa/inet.h>

static inline stk_policy *policy_of(const char *json)
{
    stk_policy *policy;
    stk_err err = {0};
    if (stk_policy_parse_text(stk_str_of(json), &policy, &err) < 0)
        fail_msg("%s: %s %s", json, err.pointer, err.detail);
    return policy;
}

static inline stk_sock sock_of(const char *text)
{
    stk_sock s = {.v6 = {.sin6_family = AF_UNSPEC}};
    bool v6 = strchr(text, ':') != NULL;
    s.any.sa_family = v6 ? AF_INET6 : AF_INET;
    assert_int_equal(inet_pton(s.any.sa_family, text, v6 ? (void *)&s.v6.sin6_addr : (void *)&s.v4.sin_addr),
                     1);
    return s;
}

#endif
