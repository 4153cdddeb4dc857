/* Files of `stockade run`: --file into the request, --collect out of its result. */
#ifndef STK_CLI_RUN_FILES_H
#define STK_CLI_RUN_FILES_H

#include "api-gateway/cli/args.h"
#include "proto/base/json.h"

/* Members "files" and "collect" of a request, where asked for. 0, or the exit status after an error was
 * printed. */
int stk_cli_files_write(const stk_cli_args *args, stk_jw *w);
/* Writes what came back below --out. What did not come back is said on stderr; false when there was any. Only
 * paths that were asked for are written, whatever the answer holds. */
bool stk_cli_files_save(const stk_cli_args *args, stk_jv result);

#endif
