/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integers are sorted by buckets: each rank gets the keys of a range, and counts them. In each step
 * two keys are others. In the manner of NPB's IS.
 *
 *     mpiexec -n 4 is [KEYS [STEPS [LARGEST]]]
 */
#include "npb.h"

#define BUCKETS 1024
#define EACH 997 /* that a step's digest has */
#define MULTIPLIER 6364136223846793005ULL
#define INCREMENT 1442695040888963407ULL

static int rank, size;
static int keys, steps, largest, mine; /* mine: keys that this rank begins with */
static int *key, *by_bucket, *received, *ranked;
static int room; /* of received */
static int of_bucket[BUCKETS], of_bucket_all[BUCKETS];
static int sent_to[256], sent_at[256], got_from[256], got_at[256];

static void *allocate(size_t count, size_t each)
{
    void *memory = calloc(count, each);
    demand(memory != NULL, "is: out of memory");
    return memory;
}

/* Where the generator is before the key of number N. */
static unsigned long long state_at(unsigned long long n)
{
    unsigned long long a = MULTIPLIER, c = INCREMENT, result_a = 1, result_c = 0;
    for (; n > 0; n >>= 1) {
        if (n & 1) {
            result_a *= a;
            result_c = result_c * a + c;
        }
        c = (a + 1) * c;
        a *= a;
    }
    return 314159265ULL * result_a + result_c;
}

/* The mean of four numbers: most keys are in the middle. */
static void draw_keys(void)
{
    int i, j;
    unsigned long long state = state_at(4ULL * (unsigned long long)rank * (unsigned long long)mine);
    for (i = 0; i < mine; i++) {
        double sum = 0;
        for (j = 0; j < 4; j++) {
            state = state * MULTIPLIER + INCREMENT;
            sum += (double)(state >> 11) / 9007199254740992.0;
        }
        key[i] = (int)(sum / 4 * largest);
    }
}

static int bucket_of(int value)
{
    return (int)((long long)value * BUCKETS / largest);
}

static void fill_buckets(void)
{
    int i, at[BUCKETS];
    memset(of_bucket, 0, sizeof of_bucket);
    for (i = 0; i < mine; i++)
        of_bucket[bucket_of(key[i])]++;
    at[0] = 0;
    for (i = 1; i < BUCKETS; i++)
        at[i] = at[i - 1] + of_bucket[i - 1];
    for (i = 0; i < mine; i++)
        by_bucket[at[bucket_of(key[i])]++] = key[i];
}

/* Buckets go to ranks in order, so that each gets about as many keys. */
static void deal_buckets(void)
{
    int i, to = 0;
    long long before = 0;
    memset(sent_to, 0, sizeof sent_to);
    for (i = 0; i < BUCKETS; i++) {
        while (to + 1 < size && before >= (long long)keys * (to + 1) / size)
            to++;
        sent_to[to] += of_bucket[i];
        before += of_bucket_all[i];
    }
    sent_at[0] = 0;
    for (i = 1; i < size; i++)
        sent_at[i] = sent_at[i - 1] + sent_to[i - 1];
}

/* How many keys this rank has then. */
static int exchange(void)
{
    int i, count;
    MPI_Allreduce(of_bucket, of_bucket_all, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    deal_buckets();
    MPI_Alltoall(sent_to, 1, MPI_INT, got_from, 1, MPI_INT, MPI_COMM_WORLD);
    got_at[0] = 0;
    for (i = 1; i < size; i++)
        got_at[i] = got_at[i - 1] + got_from[i - 1];
    count = got_at[size - 1] + got_from[size - 1];
    demand(count <= room, "is: the keys are dealt too unevenly");
    MPI_Alltoallv(by_bucket, sent_to, sent_at, MPI_INT, received, got_from, got_at, MPI_INT,
                  MPI_COMM_WORLD);
    return count;
}

/* Collective. The keys in order in `ranked`; the place of its first one in all. */
static long long sort(int count)
{
    int i, low, high;
    long long first = 0, before = count;
    int *places;
    low = high = count ? received[0] : 0;
    for (i = 0; i < count; i++) {
        low = received[i] < low ? received[i] : low;
        high = received[i] > high ? received[i] : high;
    }
    places = allocate((size_t)(high - low) + 2, sizeof *places);
    for (i = 0; i < count; i++)
        places[received[i] - low + 1]++;
    for (i = 1; i <= high - low; i++)
        places[i] += places[i - 1];
    for (i = 0; i < count; i++)
        ranked[places[received[i] - low]++] = received[i];
    free(places);
    MPI_Exscan(&before, &first, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return rank == 0 ? 0 : first;
}

int main(int argc, char **argv)
{
    int step, i, count = 0, sorted = 1, last, of_left = 0, numbers[3] = {1 << 16, 60, 1 << 18};
    long long first = 0, all = 0, some;
    unsigned long long sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    read_numbers(argc, argv, numbers, 3);
    keys = numbers[0];
    steps = numbers[1];
    largest = numbers[2];
    demand(keys % size == 0 && size <= 256, "is: KEYS must be a multiple of the processes");
    demand(2 * steps <= keys / size && steps < largest, "is: too many STEPS");
    mine = keys / size;
    room = 2 * mine + 1024;
    key = allocate((size_t)mine, sizeof *key);
    by_bucket = allocate((size_t)mine, sizeof *by_bucket);
    received = allocate((size_t)room, sizeof *received);
    ranked = allocate((size_t)room, sizeof *ranked);
    draw_keys();

    for (step = 0; step < steps; step++) {
        if (rank == 0) {
            key[step] = step;
            key[steps + step] = largest - 1 - step;
        }
        fill_buckets();
        count = exchange();
        first = sort(count);
        /* Some of them; the same ones however many ranks there are. */
        for (i = (int)((EACH - first % EACH) % EACH); i < count; i += EACH)
            sum ^= digest_of((unsigned long long)step << 40 | (unsigned long long)(first + i),
                             (unsigned long long)ranked[i]);
    }

    last = count ? ranked[count - 1] : -1;
    MPI_Sendrecv(&last, 1, MPI_INT, rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 1, &of_left, 1,
                 MPI_INT, rank > 0 ? rank - 1 : MPI_PROC_NULL, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (i = 0; i < count; i++)
        sorted = sorted && ranked[i] >= (i ? ranked[i - 1] : rank > 0 ? of_left : 0);
    some = count;
    MPI_Allreduce(&some, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (i = 0; i < count; i++)
        sum ^= digest_of((unsigned long long)(first + i), (unsigned long long)ranked[i]);
    conclude("is", steps, sorted && all == keys, (double)all, sum);
    free(key);
    free(by_bucket);
    free(received);
    free(ranked);
    MPI_Finalize();
    return 0;
}
