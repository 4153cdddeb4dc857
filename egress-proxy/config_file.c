#include "egress-proxy/config_file.h"
#include "egress-proxy/yaml.h"
#include "proto/base/field.h"

typedef struct settings {
    char listen[256], policy[4096], records[4096];
    stk_strv resolver;
} settings;

static const stk_field table[] = {
    {"listen", STK_F_TEXT, STK_FIELD_AT(settings, listen)},
    {"policy", STK_F_TEXT, STK_FIELD_AT(settings, policy)},
    {"records", STK_F_TEXT, STK_FIELD_AT(settings, records)},
    {"resolver", STK_F_STRV, STK_FIELD_AT(settings, resolver), .max = STK_RESOLVERS_MAX},
    STK_FIELD_END,
};

static void fill(const char **place, const char *text)
{
    if (!*place && text[0])
        *place = stk_xstrdup(text);
}

static int apply(const settings *got, stk_px_options *opt, stk_err *err)
{
    fill(&opt->listen, got->listen);
    fill(&opt->policy, got->policy);
    fill(&opt->records, got->records);
    for (size_t i = 0; i < got->resolver.n && opt->servers.n == i; i++) {
        int rc = stk_px_parse_server(got->resolver.v[i].p, &opt->servers.v[i], err);
        if (rc < 0)
            return rc;
        opt->servers.n++;
    }
    return 0;
}

int stk_px_config_read(const char *path, stk_px_options *opt, stk_err *err)
{
    stk_buf json STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    settings *got STK_AUTO(stk_freep) = stk_xcalloc(1, sizeof(*got));
    int rc = stk_read_document(path, &json, err);
    if (rc == 0)
        rc = stk_json_parse(stk_buf_view(&json), NULL, &doc, err);
    if (rc == 0)
        rc = stk_fields_decode(table, stk_json_root(doc), got, err);
    if (rc == 0)
        rc = apply(got, opt, err);
    stk_fields_done(table, got);
    return rc < 0 ? stk_err_wrap(err, "%s%s%s", path, err->pointer[0] ? ": " : "", err->pointer) : 0;
}
