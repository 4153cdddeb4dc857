/* Sizes that more than one program must agree on. */
#ifndef STK_MESSAGE_LIMITS_H
#define STK_MESSAGE_LIMITS_H

#include "proto/base/id.h"

#define STK_MESSAGE_VERSION 1 /* N and N-1 are read; a newer one pauses the partition */

#define STK_TENANT_MAX  64  /* bytes with NUL: RFC 1123 label                      */
#define STK_AGENT_MAX   129 /* with NUL: 1-128 of [A-Za-z0-9._-], not starting with '.' or '-' */
#define STK_WORKER_MAX  STK_ID_SIZE
#define STK_BACKEND_MAX 16
#define STK_IMAGE_MAX   256
#define STK_ACTOR_MAX   96
#define STK_TRACE_MAX   56 /* W3C traceparent */
#define STK_CWD_MAX     4096

#define STK_ARG_MAX_ONE     131072  /* one argument or environment entry (the kernel's MAX_ARG_STRLEN) */
#define STK_ARG_MAX_ALL     1048576 /* all arguments and environment together */
#define STK_ARGS_MAX        4096
#define STK_ENV_MAX         256
#define STK_LABELS_MAX      16
#define STK_FILES_MAX       64
#define STK_BODY_MAX        1048576   /* API body */
#define STK_RECORD_MAX      4194304   /* one bus record */
#define STK_OUTPUT_MAX      262144    /* bytes kept of each of stdout and stderr */
#define STK_TAIL_MAX        65536     /* of each in an API answer */
#define STK_EGRESS_MAX      200       /* egress records listed in a result; the rest is counted */
#define STK_TIMEOUT_MIN_NS  1000000LL /* 1 ms  */
#define STK_TIMEOUT_MAX_NS  (86400LL * 1000000000)     /* 24 h  */
#define STK_DEADLINE_MAX_NS (7 * 86400LL * 1000000000) /* 7 days, of deadline_seconds */
#define STK_TIMEOUT_DEF_NS  (300LL * 1000000000)       /* 300 s */

/* Topics (architecture, "Topics"). */
#define STK_TOPIC_REQUESTS    "stk.requests"
#define STK_TOPIC_ASSIGNMENTS "stk.assignments"
#define STK_TOPIC_EVENTS      "stk.events"
#define STK_TOPIC_AUDIT       "stk.audit"
#define STK_TOPIC_CONFIG      "stk.config"
#define STK_TOPIC_DEAD        "stk.dead"

#endif
