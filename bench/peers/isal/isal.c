/* Speed of ISA-L, for "cargo xtask bench codes": one line of JSON a shape.
 *
 * Time is that of the thread on its processor, as in the program it is compared with. Encoding is
 * called for whole shards and for blocks of 4 KiB of each, and the better of the two counts. */
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPENT 150000000LL
#define COLD_BYTES (256LL << 20)
#define SHARDS_MAX 256
#define BLOCK 4096

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct shape {
    int k, m, lost, stripes;
    long long bytes;
    unsigned char *memory;
    unsigned char matrix[SHARDS_MAX * SHARDS_MAX], tables[SHARDS_MAX * 32 * 32];
};

static unsigned char *shard(struct shape *s, int call, int index)
{
    return s->memory + ((long long)(call % s->stripes) * (s->k + s->m) + index) * s->bytes;
}

static void product(struct shape *s, int rows, unsigned char *tables, unsigned char **from,
                    unsigned char **to, int blocked)
{
    unsigned char *f[SHARDS_MAX], *t[SHARDS_MAX];
    long long step = blocked ? BLOCK : s->bytes;
    for (long long at = 0; at < s->bytes; at += step) {
        for (int i = 0; i < s->k; i++) f[i] = from[i] + at;
        for (int i = 0; i < rows; i++) t[i] = to[i] + at;
        ec_encode_data((int)step, s->k, rows, tables, f, t);
    }
}

static void encode(struct shape *s, int call, int blocked)
{
    unsigned char *from[SHARDS_MAX], *to[SHARDS_MAX];
    for (int i = 0; i < s->k; i++) from[i] = shard(s, call, i);
    for (int i = 0; i < s->m; i++) to[i] = shard(s, call, s->k + i);
    product(s, s->m, s->tables, from, to, blocked);
}

static void xor_encode(struct shape *s, int call, int blocked)
{
    void *all[SHARDS_MAX];
    (void)blocked;
    for (int i = 0; i <= s->k; i++) all[i] = shard(s, call, i);
    if (xor_gen(s->k + 1, (int)s->bytes, all)) exit(2);
}

/* Loses the first shards and brings them back, matrix included. */
static void decode(struct shape *s, int call, int blocked)
{
    static unsigned char part[SHARDS_MAX * SHARDS_MAX], inverse[SHARDS_MAX * SHARDS_MAX];
    static unsigned char tables[SHARDS_MAX * 32 * 32];
    unsigned char *from[SHARDS_MAX], *to[SHARDS_MAX];
    for (int i = 0; i < s->k; i++) {
        memcpy(part + i * s->k, s->matrix + (i + s->lost) * s->k, (size_t)s->k);
        from[i] = shard(s, call, i + s->lost);
    }
    if (gf_invert_matrix(part, inverse, s->k)) exit(2);
    ec_init_tables(s->k, s->lost, inverse, tables);
    for (int i = 0; i < s->lost; i++) to[i] = shard(s, call, i);
    product(s, s->lost, tables, from, to, blocked);
}

static double speed(struct shape *s, void (*work)(struct shape *, int, int), int blocked)
{
    double best = 0;
    for (int i = 0; i < 3; i++) {
        long long begin = now(), calls = 0;
        while (now() - begin < SPENT) work(s, (int)calls++, blocked);
        double rate = (double)s->k * (double)s->bytes * (double)calls / (double)(now() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

static double better(struct shape *s, void (*work)(struct shape *, int, int))
{
    double whole = speed(s, work, 0), blocked = speed(s, work, 1);
    return whole > blocked ? whole : blocked;
}

/* Arguments: SHAPE:BYTES:LOST:hot|cold ... */
int main(int count, char **arguments)
{
    static struct shape s;
    for (int a = 1; a < count; a++) {
        char place[8];
        if (sscanf(arguments[a], "%d+%d:%lld:%d:%7s", &s.k, &s.m, &s.bytes, &s.lost, place) != 5)
            return 2;
        long long stripe = (s.k + s.m) * s.bytes;
        s.stripes = strcmp(place, "cold") ? 1 : (int)((COLD_BYTES + stripe - 1) / stripe);
        s.memory = aligned_alloc(4096, (size_t)(s.stripes * stripe + 4095) / 4096 * 4096);
        for (long long i = 0; i < s.stripes * stripe; i++) s.memory[i] = (unsigned char)(i >> 3);
        gf_gen_cauchy1_matrix(s.matrix, s.k + s.m, s.k);
        ec_init_tables(s.k, s.m, s.matrix + s.k * s.k, s.tables);
        printf("{\"mode\":\"isal\",\"shape\":\"%d+%d\",\"place\":\"%s\",\"lost\":%d,"
               "\"encode\":%.3f,\"decode\":%.3f}\n",
               s.k, s.m, place, s.lost, better(&s, encode), better(&s, decode));
        if (s.m == 1)
            printf("{\"mode\":\"isal xor_gen\",\"shape\":\"%d+%d\",\"place\":\"%s\",\"lost\":%d,"
                   "\"encode\":%.3f,\"decode\":%.3f}\n",
                   s.k, s.m, place, s.lost, speed(&s, xor_encode, 0), speed(&s, xor_encode, 0));
        free(s.memory);
    }
    return 0;
}
