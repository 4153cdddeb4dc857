#include "proto/policy/address_table.h"

/* Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), the multicast registries,
 * and the metadata addresses that cloud vendors document. Where the registry says "globally reachable" of a
 * protocol anycast it is refused all the same. */

#define V4(a, b, c, d, n, k)                                                                                 \
    {                                                                                                        \
        {a, b, c, d}, n, STK_ADDR_##k                                                                        \
    }
#define W(w) (uint8_t)((w) >> 8), (uint8_t)((w)&0xff)
#define V6(a, b, c, d, e, f, g, h, n, k)                                                                     \
    {                                                                                                        \
        {W(a), W(b), W(c), W(d), W(e), W(f), W(g), W(h)}, n, STK_ADDR_##k                                    \
    }

const stk_addr_row stk__addr_rows4[] = {
    V4(0, 0, 0, 0, 8, UNSPECIFIED),         /* this network; connect(0.0.0.0) reaches loopback, RFC 791 */
    V4(0, 0, 0, 0, 32, UNSPECIFIED),        /* RFC 1122 */
    V4(10, 0, 0, 0, 8, PRIVATE),            /* RFC 1918 */
    V4(100, 64, 0, 0, 10, CGNAT),           /* RFC 6598 */
    V4(127, 0, 0, 0, 8, LOOPBACK),          /* RFC 1122 */
    V4(169, 254, 0, 0, 16, LINK_LOCAL),     /* RFC 3927 */
    V4(172, 16, 0, 0, 12, PRIVATE),         /* RFC 1918 */
    V4(192, 0, 0, 0, 24, SPECIAL),          /* IETF protocol assignments, RFC 6890 */
    V4(192, 0, 0, 0, 29, SPECIAL),          /* DS-Lite, RFC 7335 */
    V4(192, 0, 0, 8, 32, SPECIAL),          /* dummy, RFC 7600 */
    V4(192, 0, 0, 9, 32, SPECIAL),          /* PCP anycast, RFC 7723 */
    V4(192, 0, 0, 10, 32, SPECIAL),         /* TURN anycast, RFC 8155 */
    V4(192, 0, 0, 170, 32, SPECIAL),        /* NAT64 discovery, RFC 8880 */
    V4(192, 0, 0, 171, 32, SPECIAL),        /* NAT64 discovery, RFC 8880 */
    V4(192, 0, 2, 0, 24, DOCUMENTATION),    /* TEST-NET-1, RFC 5737 */
    V4(192, 31, 196, 0, 24, SPECIAL),       /* AS112, RFC 7535 */
    V4(192, 52, 193, 0, 24, SPECIAL),       /* AMT, RFC 7450 */
    V4(192, 88, 99, 0, 24, SPECIAL),        /* 6to4 relay, RFC 7526 */
    V4(192, 88, 99, 2, 32, SPECIAL),        /* 6a44 relay, RFC 6751 */
    V4(192, 168, 0, 0, 16, PRIVATE),        /* RFC 1918 */
    V4(192, 175, 48, 0, 24, SPECIAL),       /* AS112, RFC 7534 */
    V4(198, 18, 0, 0, 15, BENCHMARK),       /* RFC 2544 */
    V4(198, 51, 100, 0, 24, DOCUMENTATION), /* TEST-NET-2, RFC 5737 */
    V4(203, 0, 113, 0, 24, DOCUMENTATION),  /* TEST-NET-3, RFC 5737 */
    V4(224, 0, 0, 0, 4, MULTICAST),         /* RFC 5771 */
    V4(240, 0, 0, 0, 4, RESERVED),          /* RFC 1112; Linux routes it */
    V4(255, 255, 255, 255, 32, BROADCAST),  /* RFC 919 */
    V4(168, 63, 129, 16, 32, METADATA),     /* Azure, a public address */
    V4(169, 254, 169, 254, 32, METADATA),   /* AWS, GCE, Azure, OpenStack and others */
    V4(169, 254, 170, 2, 32, METADATA),     /* AWS ECS */
    V4(169, 254, 170, 23, 32, METADATA),    /* AWS EKS pod identity */
    V4(169, 254, 169, 253, 32, METADATA),   /* AWS resolver */
    V4(169, 254, 42, 42, 32, METADATA),     /* Scaleway */
    V4(100, 100, 100, 200, 32, METADATA),   /* Alibaba */
    V4(192, 0, 0, 192, 32, METADATA),       /* Oracle */
};
const size_t stk__addr_nrows4 = STK_COUNT(stk__addr_rows4);

const stk_addr_row stk__addr_rows6[] = {
    V6(0, 0, 0, 0, 0, 0, 0, 1, 128, LOOPBACK),                   /* RFC 4291 */
    V6(0, 0, 0, 0, 0, 0, 0, 0, 128, UNSPECIFIED),                /* RFC 4291 */
    V6(0, 0, 0, 0, 0, 0xffff, 0, 0, 96, EMBEDDED_V4),            /* mapped, RFC 4291 */
    V6(0, 0, 0, 0, 0, 0, 0, 0, 96, EMBEDDED_V4),                 /* compatible, RFC 4291 */
    V6(0, 0, 0, 0, 0xffff, 0, 0, 0, 96, EMBEDDED_V4),            /* translated, RFC 2765 */
    V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0, 96, EMBEDDED_V4),         /* NAT64, RFC 6052 */
    V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0, 48, EMBEDDED_V4),         /* local NAT64, RFC 8215 */
    V6(0x100, 0, 0, 0, 0, 0, 0, 0, 64, SPECIAL),                 /* discard, RFC 6666 */
    V6(0x100, 0, 0, 1, 0, 0, 0, 0, 64, SPECIAL),                 /* dummy, RFC 9780 */
    V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 23, SPECIAL),                /* IETF protocol assignments, RFC 2928 */
    V6(0x2001, 0, 0, 0, 0, 0, 0, 0, 32, EMBEDDED_V4),            /* Teredo, RFC 4380 */
    V6(0x2001, 1, 0, 0, 0, 0, 0, 1, 128, SPECIAL),               /* PCP anycast, RFC 7723 */
    V6(0x2001, 1, 0, 0, 0, 0, 0, 2, 128, SPECIAL),               /* TURN anycast, RFC 8155 */
    V6(0x2001, 1, 0, 0, 0, 0, 0, 3, 128, SPECIAL),               /* DNS-SD SRP anycast, RFC 9665 */
    V6(0x2001, 2, 0, 0, 0, 0, 0, 0, 48, BENCHMARK),              /* RFC 5180 */
    V6(0x2001, 3, 0, 0, 0, 0, 0, 0, 32, SPECIAL),                /* AMT, RFC 7450 */
    V6(0x2001, 4, 0x112, 0, 0, 0, 0, 0, 48, SPECIAL),            /* AS112, RFC 7535 */
    V6(0x2001, 0x10, 0, 0, 0, 0, 0, 0, 28, SPECIAL),             /* ORCHID, RFC 4843 */
    V6(0x2001, 0x20, 0, 0, 0, 0, 0, 0, 28, SPECIAL),             /* ORCHIDv2, RFC 7343 */
    V6(0x2001, 0x30, 0, 0, 0, 0, 0, 0, 28, SPECIAL),             /* drone remote id, RFC 9374 */
    V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0, 32, DOCUMENTATION),      /* RFC 3849 */
    V6(0x2002, 0, 0, 0, 0, 0, 0, 0, 16, EMBEDDED_V4),            /* 6to4, RFC 3056 */
    V6(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0, 48, SPECIAL),        /* AS112, RFC 7534 */
    V6(0x3ffe, 0, 0, 0, 0, 0, 0, 0, 16, SPECIAL),                /* 6bone, RFC 3701 */
    V6(0x3fff, 0, 0, 0, 0, 0, 0, 0, 20, DOCUMENTATION),          /* RFC 9637 */
    V6(0x5f00, 0, 0, 0, 0, 0, 0, 0, 16, SPECIAL),                /* SRv6, RFC 9602 */
    V6(0xfc00, 0, 0, 0, 0, 0, 0, 0, 7, PRIVATE),                 /* unique local, RFC 4193 */
    V6(0xfe80, 0, 0, 0, 0, 0, 0, 0, 10, LINK_LOCAL),             /* RFC 4291 */
    V6(0xfec0, 0, 0, 0, 0, 0, 0, 0, 10, PRIVATE),                /* site local, RFC 3879 */
    V6(0xff00, 0, 0, 0, 0, 0, 0, 0, 8, MULTICAST),               /* RFC 4291 */
    V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254, 128, METADATA),      /* AWS */
    V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23, 128, METADATA),       /* AWS EKS pod identity */
    V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254, 128, METADATA),       /* GCE */
    V6(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe, 128, METADATA), /* Oracle */
    V6(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42, 128, METADATA),        /* Scaleway */
    V6(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1, 128, METADATA),    /* Linode and others */
    V6(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200, 128, METADATA),  /* Alibaba */
};
const size_t stk__addr_nrows6 = STK_COUNT(stk__addr_rows6);
