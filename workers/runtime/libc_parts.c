/* Stand-ins for parts of the C library that this static program would otherwise carry whole: a name resolver
 * and a plug-in loader, message catalogues and character set converters, time zones, a scanner. libevent
 * refers to them and our own code needs almost none of it. Without them the program's text is half the size,
 * and so is what a sandbox costs. */
#include "proto/base/base.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <time.h>

/* The runtime resolves no name. */
int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict res)
{
    return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *res)
{
}

const char *gai_strerror(int code)
{
    return "names are not resolved here";
}

struct servent *getservbyname(const char *name, const char *proto)
{
    return NULL;
}

struct protoent *getprotobynumber(int proto)
{
    return NULL;
}

int getifaddrs(struct ifaddrs **ifap)
{
    return -1;
}

void freeifaddrs(struct ifaddrs *ifa)
{
}

unsigned if_nametoindex(const char *name)
{
    return 0;
}

/* What printf's %m and strerror lead to; the texts are translated there. */
char *__strerror_r(int errnum, char *buf, size_t size);
char *__strerror_r(int errnum, char *buf, size_t size)
{
    return strerror(errnum);
}

char *strerror(int errnum)
{
    const char *text = strerrordesc_np(errnum);
    return (char *)(uintptr_t)(text ? text : "unknown error");
}

/* libevent's own parser of addresses, which nothing here calls, is all that scans. */
int __isoc99_sscanf(const char *restrict text, const char *restrict format, ...);
int __isoc99_sscanf(const char *restrict text, const char *restrict format, ...)
{
    return 0;
}

_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);
_Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
    ssize_t ignored = write(STDERR_FILENO, assertion, strlen(assertion));
    (void)ignored;
    abort();
}

/* UTC only: there is one zone in a sandbox. Days to civil dates in the proleptic Gregorian calendar, counted
 * from 0000-03-01, so that the leap day is the last of its year. */
struct tm *gmtime_r(const time_t *restrict timer, struct tm *restrict ret)
{
    int64_t sec = *timer % 86400, days = *timer / 86400;
    if (sec < 0) {
        sec += 86400;
        days--;
    }
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *ret = (struct tm){
        .tm_sec = (int)(sec % 60),
        .tm_min = (int)(sec / 60 % 60),
        .tm_hour = (int)(sec / 3600),
        .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
        .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
        .tm_year = (int)(year + era * 400 + (month >= 10) - 1900),
        .tm_wday = (int)(((days + 4) % 7 + 7) % 7),
    };
    return ret;
}
