/* Egress policy: host patterns, sandbox list ∩ organisation policy, "does this change weaken?". Pure: no
 * clock, no socket, no file. Used by gateway, scheduler, worker and proxy alike, so that all mean the same.
 */
#ifndef STK_POLICY_POLICY_H
#define STK_POLICY_POLICY_H

#include "proto/base/field.h"
#include "proto/policy/address.h"

#define STK_NAME_MAX 256 /* with NUL: a DNS name is at most 253 characters */

/* Canonical host: lower case, one trailing dot removed, IDN to A-label, LDH + '_' labels of 1-63, 1-253 in
 * all. What is judged is what is dialled. 0, or -STK_E_FIELD with why ("a label is longer than 63", …). IP
 * literals in any spelling are "names" of digits and pass as such (they are on no list): *ret_literal tells.
 */
int stk_host_canonical(stk_str host, char out[STK_NAME_MAX], bool *ret_literal, stk_err *err) STK_MUST_USE;

/* One allow/deny entry: exact name or "*.suffix" (below it, not the apex), optional ":port". Without a port:
 * 80 and 443. Refused: "", "*", "*.", "*." + one label, numeric or malformed, IP literals, schemes, paths,
 * user-info, port 0 or > 65535. */
typedef struct stk_entry {
    char name[STK_NAME_MAX]; /* without "*." */
    bool wildcard;
    uint16_t port; /* 0 = 80 and 443 */
} stk_entry;
int stk_entry_parse(stk_str text, stk_entry *ret, stk_err *err) STK_MUST_USE;
/* Canonical text ("*.example.org:8443"). */
void stk_entry_text(const stk_entry *entry, char out[STK_NAME_MAX + 8]);
bool stk_entry_matches(const stk_entry *entry, const char *host, uint16_t port);
/* True when everything that b matches is matched by a. */
bool stk_entry_covers(const stk_entry *a, const stk_entry *b);
/* "*.co.uk": a wildcard over a public suffix (a small table of the common ones); a warning in the plan. */
bool stk_entry_over_public_suffix(const stk_entry *entry);

/* A compiled set of entries: constant-time match for 10 or 10,000 (hash by name and by each suffix). */
typedef struct stk_entries stk_entries;
int stk_entries_new(const stk_strv *texts, stk_entries **ret,
                    stk_err *err) STK_MUST_USE; /* err->pointer "/3" names the bad one */
void stk_entries_free(stk_entries *set);
STK_DEFINE_FREEP(stk_entries, stk_entries_freep, stk_entries_free)
size_t stk_entries_count(const stk_entries *set);
const stk_entry *stk_entries_at(const stk_entries *set, size_t i);
/* The entry that allows it, or NULL. *ret_name_only is set when an entry names the host but not this port. */
const stk_entry *stk_entries_match(const stk_entries *set, const char *host, uint16_t port,
                                   bool *ret_name_only);

typedef enum stk_tls_mode { STK_TLS_MATCH, STK_TLS_REQUIRE, STK_TLS_OFF } stk_tls_mode;
int stk_tls_mode_parse(const char *text, stk_tls_mode *ret);
const char *stk_tls_mode_text(stk_tls_mode mode);

/* The whole policy of one proxy (the policy file of egress.md): immutable once made, swapped atomically. */
typedef struct stk_policy stk_policy;
typedef struct stk_policy_limits {
    int64_t tunnels;          /* at once; default 256              */
    int64_t bytes;            /* in all, both ways; 0 = no limit   */
    int64_t bytes_per_second; /* token bucket; 0 = no limit        */
    int64_t dns_queries;      /* in all; default 10000             */
    stk_span idle;            /* of a tunnel; default 300 s        */
    stk_span head;            /* default 10 s                      */
    stk_span connect;         /* default 10 s                      */
} stk_policy_limits;
/* Strict: unknown members, bad entries and bad types reject the whole policy (-STK_E_POLICY with pointer). */
int stk_policy_parse(stk_jv doc, stk_policy **ret, stk_err *err) STK_MUST_USE;
int stk_policy_parse_text(stk_str json, stk_policy **ret, stk_err *err) STK_MUST_USE;
void stk_policy_free(stk_policy *policy);
STK_DEFINE_FREEP(stk_policy, stk_policy_freep, stk_policy_free)
int64_t stk_policy_version(const stk_policy *policy);
stk_tls_mode stk_policy_tls(const stk_policy *policy);
const stk_policy_limits *stk_policy_limits_of(const stk_policy *policy);

typedef struct stk_verdict {
    bool allow;
    const char *reason;          /* "allowed", "host_not_allowed", "port_not_allowed", "org_policy": static */
    char rule[STK_NAME_MAX + 8]; /* the entry that decided, "" = none */
} stk_verdict;
/* Steps 3 and 4 of the decision order, for a canonical host. */
stk_verdict stk_policy_judge(const stk_policy *policy, const char *host, uint16_t port);
/* Step 6: may this address be dialled for that host and port? Applies `internal`; self addresses are the
 * caller's. */
bool stk_policy_address_ok(const stk_policy *policy, const struct sockaddr *addr, const char *host,
                           uint16_t port, stk_addr_class *ret_class);

/* Effective allow-list, entry by entry, for the plan: who allows it, who narrows it. */
typedef struct stk_effective {
    char entry[STK_NAME_MAX + 8];
    bool effective;
    char narrowed_by[STK_NAME_MAX + 32]; /* "organisation deny *.x.com", "organisation default deny", or "" */
    bool warn_public_suffix;
} stk_effective;
/* *ret_v has n = number of entries; the caller frees. */
int stk_policy_effective(const stk_policy *policy, stk_effective **ret_v, size_t *ret_n,
                         stk_err *err) STK_MUST_USE;

#endif
