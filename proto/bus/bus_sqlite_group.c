/* Groups: which member has which partition. Every function needs the file's lock. Members keep what they have
 * as far as the shares stay even; a partition changes hands only after its owner's on_revoked has run. */
#include "proto/bus/bus_sqlite_impl.h"

stk_bus_group *stk__bus_group_get(stk_bus_file *file, stk_bus_topic_state *topic, const char *name)
{
    for (stk_bus_group *group = file->groups; group; group = group->next)
        if (group->topic == topic && strcmp(group->name, name) == 0)
            return group;
    stk_bus_group *group = stk_xcalloc(1, sizeof(*group));
    group->name = stk_xstrdup(name);
    group->topic = topic;
    group->parts = stk_xcalloc((size_t)topic->nparts, sizeof(*group->parts));
    group->next = file->groups;
    file->groups = group;
    return group;
}

void stk__bus_group_free(stk_bus_group *group)
{
    free(group->name);
    free(group->parts);
    free(group);
}

static void dirty(stk_bus_file *file, stk_bus_group_part *part)
{
    part->dirty = true;
    if (!file->commits_dirty) {
        file->commits_dirty = true;
        file->commits_since = stk_mono_now();
        stk__bus_write_wake(file);
    }
}

void stk__bus_group_finished(stk_bus_file *file, stk_bus_group *group, int32_t partition, int64_t prefix)
{
    stk_bus_group_part *part = &group->parts[partition];
    if (prefix > part->next) {
        part->next = prefix;
        dirty(file, part);
    }
}

static void give(stk_bus_file *file, stk_bus_group *group, int32_t partition, stk_bus_reader *to)
{
    stk_bus_group_part *part = &group->parts[partition];
    if (!part->known) {
        part->known = true;
        part->next = group->topic->parts[partition].first;
        dirty(file, part);
    }
    part->owner = to;
    stk__bus_sub_attach(&to->subs[partition], part->next);
}

static int32_t count_members(const stk_bus_group *group)
{
    int32_t n = 0;
    for (const stk_bus_reader *c = group->members; c; c = c->next_member)
        n++;
    return n;
}

static int32_t count_targets(const stk_bus_group *group, const stk_bus_reader *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < group->topic->nparts; i++)
        n += group->parts[i].target == c;
    return n;
}

/* Even shares: the first `extra` members in joining order have one more. What is over a member's share loses
 * its target. */
static void cut_shares(stk_bus_group *group, int32_t least, int32_t extra)
{
    for (stk_bus_reader *c = group->members; c; c = c->next_member, extra--) {
        int32_t over = count_targets(group, c) - least - (extra > 0);
        for (int32_t i = group->topic->nparts; over > 0 && i-- > 0;)
            if (group->parts[i].target == c) {
                group->parts[i].target = NULL;
                over--;
            }
    }
}

static void fill_shares(stk_bus_group *group, int32_t least, int32_t extra)
{
    int32_t i = 0;
    for (stk_bus_reader *c = group->members; c; c = c->next_member, extra--) {
        int32_t lack = least + (extra > 0) - count_targets(group, c);
        for (; lack > 0 && i < group->topic->nparts; i++)
            if (!group->parts[i].target) {
                group->parts[i].target = c;
                lack--;
            }
    }
}

static void rebalance(stk_bus_file *file, stk_bus_group *group)
{
    int32_t members = count_members(group);
    if (members == 0)
        return;
    cut_shares(group, group->topic->nparts / members, group->topic->nparts % members);
    fill_shares(group, group->topic->nparts / members, group->topic->nparts % members);
    for (int32_t i = 0; i < group->topic->nparts; i++) {
        stk_bus_group_part *part = &group->parts[i];
        if (!part->owner && part->target) {
            give(file, group, i, part->target);
        } else if (part->owner) {
            stk_bus_sub *sub = &part->owner->subs[i];
            sub->revoke = part->target != part->owner;
            if (sub->revoke)
                stk__bus_flag(part->owner);
        }
    }
}

void stk__bus_group_join(stk_bus_file *file, stk_bus_reader *c)
{
    stk_bus_reader **at = &c->group->members;
    while (*at)
        at = &(*at)->next_member;
    *at = c;
    rebalance(file, c->group);
}

void stk__bus_group_release(stk_bus_file *file, stk_bus_reader *c, int32_t partition)
{
    stk_bus_group_part *part = &c->group->parts[partition];
    stk__bus_sub_detach(&c->subs[partition]);
    part->owner = NULL;
    if (part->target)
        give(file, c->group, partition, part->target);
}

void stk__bus_group_leave(stk_bus_file *file, stk_bus_reader *c)
{
    stk_bus_group *group = c->group;
    for (stk_bus_reader **at = &group->members; *at; at = &(*at)->next_member)
        if (*at == c) {
            *at = c->next_member;
            break;
        }
    for (int32_t i = 0; i < group->topic->nparts; i++) {
        stk_bus_group_part *part = &group->parts[i];
        if (part->target == c)
            part->target = NULL;
        if (part->owner == c)
            stk__bus_group_release(file, c, i);
    }
    rebalance(file, group);
    if (file->commits_dirty) {
        file->commits_now = true;
        stk__bus_write_wake(file);
    }
}
