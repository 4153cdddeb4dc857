#include "proto/base/keyring.h"
#include "proto/base/fd.h"
#include "proto/base/id.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

enum { KEY_LINE = STK_KEY_ID + 2 * STK_KEY_SIZE + 1 };

typedef struct key_text {
    char p[KEY_LINE * STK_KEYS_MOST + 1];
    size_t n;
} key_text;

static void key_text_done(key_text *text)
{
    OPENSSL_cleanse(text, sizeof(*text));
}

static int check_file(int fd, const char *path, stk_err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return stk_err_set(err, STK_E_CONFIG, "%s: cannot be examined", path);
    if (!S_ISREG(st.st_mode))
        return stk_err_set(err, STK_E_CONFIG, "%s: a key file must be a regular file", path);
    if (st.st_mode & (S_IRWXO | S_IWGRP))
        return stk_err_set(err, STK_E_CONFIG, "%s: a key file must not be open to others (mode %03o)", path,
                           (unsigned)st.st_mode & 0777u);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return stk_err_set(err, STK_E_CONFIG, "%s: a key file must be ours or root's", path);
    return 0;
}

static int read_text(const char *path, key_text *text, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return stk_err_set(err, STK_E_CONFIG, "%s: %s", path, strerrordesc_np(errno));
    int rc = check_file(fd, path, err);
    if (rc < 0)
        return rc;
    while (text->n < sizeof(text->p)) {
        ssize_t got = read(fd, text->p + text->n, sizeof(text->p) - text->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return stk_err_set(err, STK_E_CONFIG, "%s: %s", path, strerrordesc_np(errno));
        if (got == 0)
            return 0;
        text->n += (size_t)got;
    }
    return stk_err_set(err, STK_E_CONFIG, "%s: more than %d keys", path, STK_KEYS_MOST);
}

static bool id_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static bool parse_line(stk_str line, stk_key *key)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    if (!colon || colon == line.p ||
        !stk_str_copy(stk_str_n(line.p, (size_t)(colon - line.p)), key->id, sizeof(key->id)))
        return false;
    for (const char *c = key->id; *c; c++)
        if (!id_char(*c))
            return false;
    stk_str hex = stk_str_n(colon + 1, line.n - (size_t)(colon - line.p) - 1);
    return hex.n == 2 * STK_KEY_SIZE && stk_unhex(hex, key->bytes, STK_KEY_SIZE) == 0;
}

static const stk_key *find(const stk_keyring *ring, const char *id)
{
    for (size_t i = 0; i < ring->n; i++)
        if (strcmp(ring->keys[i].id, id) == 0)
            return &ring->keys[i];
    return NULL;
}

static int parse(const key_text *text, const char *path, stk_keyring *ring, stk_err *err)
{
    const char *at = text->p;
    const char *end = text->p + text->n;
    for (unsigned number = 1; at < end; number++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        stk_str line = stk_str_n(at, (size_t)((nl ? nl : end) - at));
        stk_key key = {.id = ""};
        bool good = ring->n < STK_KEYS_MOST && parse_line(line, &key);
        bool twice = good && find(ring, key.id);
        if (good && !twice)
            ring->keys[ring->n++] = key;
        OPENSSL_cleanse(&key, sizeof(key));
        if (twice)
            return stk_err_set(err, STK_E_CONFIG, "%s:%u: this key id is already used", path, number);
        if (!good)
            return stk_err_set(err, STK_E_CONFIG, "%s:%u: expected id:64 hex digits, at most %d lines", path,
                               number, STK_KEYS_MOST);
        at = nl ? nl + 1 : end;
    }
    return ring->n ? 0 : stk_err_set(err, STK_E_CONFIG, "%s: holds no key", path);
}

int stk_keyring_load(const char *path, stk_keyring **ret, stk_err *err)
{
    key_text text STK_AUTO(key_text_done) = {.n = 0};
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = stk_xcalloc(1, sizeof(*ring));
    int rc = read_text(path, &text, err);
    if (rc == 0)
        rc = parse(&text, path, ring, err);
    if (rc == 0)
        *ret = STK_TAKE(ring);
    return rc;
}

static void random_line(char out[KEY_LINE + 1])
{
    uint8_t bytes[4 + STK_KEY_SIZE];
    stk_random(bytes, sizeof(bytes));
    stk_hex(bytes, 4, out);
    out[8] = ':';
    stk_hex(bytes + 4, STK_KEY_SIZE, out + 9);
    memcpy(out + 9 + (size_t)2 * STK_KEY_SIZE, "\n", 2);
    OPENSSL_cleanse(bytes, sizeof(bytes));
}

/* Linked into place whole, so that a kill half-way never leaves a file that does not load. */
static int write_and_link(const char *path, const char *tmp, const char *line, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return stk_err_errno(err, errno, "create %s", tmp);
    int rc = stk_fd_write_all(fd, line, strlen(line), err);
    if (rc == 0 && fsync(fd) < 0)
        rc = stk_err_errno(err, errno, "fsync %s", tmp);
    if (rc == 0 && link(tmp, path) < 0 && errno != EEXIST)
        rc = stk_err_errno(err, errno, "create %s", path);
    unlink(tmp);
    return rc < 0 ? rc : stk_sync_parent(path, err);
}

int stk_keyring_create(const char *path, stk_err *err)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return 0;
    char tmp[4096];
    char id[STK_ID_SIZE];
    char line[KEY_LINE + 1];
    stk_id_new("new", stk_wall_now(), id);
    int rc = stk_path(tmp, sizeof(tmp), err, "%s.%s", path, id);
    if (rc < 0)
        return rc;
    random_line(line);
    rc = write_and_link(path, tmp, line, err);
    OPENSSL_cleanse(line, sizeof(line));
    return rc;
}

void stk_keyring_free(stk_keyring *ring)
{
    if (!ring)
        return;
    OPENSSL_cleanse(ring, sizeof(*ring));
    free(ring);
}
