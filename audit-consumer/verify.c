#include "audit-consumer/audit_consumer.h"
#include "proto/base/fd.h"
#include "proto/base/json.h"
#include "proto/base/state_dir.h"
#include "proto/store/store_sqlite.h"
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static void usage(FILE *to)
{
    fputs("usage: stockade audit verify [--state-dir DIR | --file FILE] [--json]\n"
          "\n"
          "Recomputes the hash chain of every stored audit row. Exit status: 0 the chain is whole, 1 it is "
          "broken (the\n"
          "first broken row is named) or the file can't be read, 2 wrong usage.\n"
          "\n"
          "  --state-dir DIR  state directory of `stockade up` (default: " STK_STATE_DIR_HELP ")\n"
          "  --file FILE      an audit database itself\n"
          "  --json           one JSON object instead of a sentence\n",
          to);
}

static void print_json(const stk_chain_report *report)
{
    char head[2 * STK_SHA256 + 1];
    stk_hex(report->head, STK_SHA256, head);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_jw w;
    stk_jw_init(&w, &out);
    stk_jw_object(&w);
    stk_jw_kbool(&w, "ok", report->ok);
    stk_jw_kint(&w, "rows", report->rows);
    stk_jw_kint(&w, "chains", report->chains);
    stk_jw_ktext(&w, "head", head);
    if (!report->ok) {
        stk_jw_kint(&w, "bad_partition", report->bad_partition);
        stk_jw_kint(&w, "bad_seq", report->bad_seq);
        stk_jw_ktext(&w, "bad_id", report->bad_id);
        stk_jw_ktext(&w, "why", report->why);
    }
    stk_jw_close(&w, '}');
    printf("%s\n", out.p);
}

static void print_text(const stk_chain_report *report)
{
    char head[2 * STK_SHA256 + 1];
    stk_hex(report->head, STK_SHA256, head);
    if (report->ok)
        printf("audit chain whole: %lld rows in %d chain%s, head %s\n", (long long)report->rows,
               report->chains, report->chains == 1 ? "" : "s", head);
    else
        printf("audit chain BROKEN at row %lld of chain %d (%s): %s\n", (long long)report->bad_seq,
               report->bad_partition, report->bad_id, report->why);
}

static int verify(const char *path, bool json)
{
    stk_err err;
    stk_chain_report report;
    if (access(path, F_OK) < 0) {
        fprintf(stderr, "stockade audit verify: no audit trail at %s: --state-dir is that of `stockade up`\n",
                path);
        return 1;
    }
    if (stk_store_sqlite_verify_file(path, &report, &err) < 0) {
        fprintf(stderr, "stockade audit verify: %s\n", err.detail);
        return 1;
    }
    if (json)
        print_json(&report);
    else
        print_text(&report);
    return report.ok ? 0 : 1;
}

int stk_verb_audit_verify(int argc, char **argv)
{
    static const struct option options[] = {{"state-dir", required_argument, NULL, 'd'},
                                            {"file", required_argument, NULL, 'f'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *dir = NULL;
    const char *file = NULL;
    bool json = false;
    optind = 1;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == 'd') {
            dir = optarg;
        } else if (c == 'f') {
            file = optarg;
        } else if (c == 'j') {
            json = true;
        } else if (c == 'h') {
            usage(stdout);
            return 0;
        } else {
            fprintf(stderr, "stockade audit verify: %s %s; see stockade audit verify --help\n",
                    c == ':' ? "a value is missing after" : "no option", argv[optind - 1]);
            return 2;
        }
    }
    if (optind < argc) {
        fputs("stockade audit verify: takes no arguments; see stockade audit verify --help\n", stderr);
        return 2;
    }
    char path[4096], own[4000];
    stk_err err;
    if (!file && ((!dir && stk_state_dir_default(own, sizeof(own), &err) < 0) ||
                  stk_path(path, sizeof(path), &err, "%s/audit.db", dir ? dir : own) < 0)) {
        fprintf(stderr, "stockade audit verify: %s\n", err.detail);
        return 2;
    }
    return verify(file ? file : path, json);
}
