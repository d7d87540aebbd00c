/* SPDX-License-Identifier: BSD-3-Clause */
#include "known_calls.h"

#include <map>

namespace zc::instrument {

namespace {

using kind = known_call::kind;

/* Arguments in the order of the MPI standard's C binding. */
constexpr known_call mpi_calls[] = {
    {"MPI_Init", "..", kind::pure},
    {"MPI_Init_thread", "...u", kind::pure},
    {"MPI_Initialized", "u", kind::pure},
    {"MPI_Finalized", "u", kind::pure},
    {"MPI_Finalize", "", kind::collective},
    {"MPI_Abort", "..", kind::ends},
    {"MPI_Wtime", "", kind::own},
    {"MPI_Wtick", "", kind::own},
    {"MPI_Get_processor_name", "oo", kind::own},
    {"MPI_Get_version", "uu", kind::pure},
    {"MPI_Error_string", ".oo", kind::pure},
    {"MPI_Error_class", ".u", kind::pure},
    {"MPI_Comm_rank", ".o", kind::own},
    {"MPI_Comm_size", ".u", kind::pure},
    {"MPI_Comm_dup", ".h", kind::collective},
    {"MPI_Comm_split", "...h", kind::collective},
    {"MPI_Comm_create", "..h", kind::collective},
    {"MPI_Comm_free", "H", kind::collective},
    {"MPI_Comm_group", ".h", kind::pure},
    {"MPI_Comm_set_errhandler", "..", kind::pure},
    {"MPI_Errhandler_set", "..", kind::pure},
    {"MPI_Group_incl", "..ih", kind::pure},
    {"MPI_Group_excl", "..ih", kind::pure},
    {"MPI_Group_free", "H", kind::pure},
    {"MPI_Group_rank", ".o", kind::own},
    {"MPI_Group_size", ".o", kind::own},
    {"MPI_Dims_create", "..U", kind::pure},
    {"MPI_Cart_create", "..ii.h", kind::collective},
    {"MPI_Cart_coords", "...o", kind::own},
    {"MPI_Cart_rank", ".io", kind::own},
    {"MPI_Cart_get", "..uuo", kind::own},
    {"MPI_Cart_shift", "...oo", kind::own},
    {"MPI_Cart_sub", ".ih", kind::collective},
    {"MPI_Type_contiguous", "..h", kind::pure},
    {"MPI_Type_vector", "....h", kind::pure},
    {"MPI_Type_create_hvector", "....h", kind::pure},
    {"MPI_Type_indexed", ".ii.h", kind::pure},
    {"MPI_Type_create_struct", ".iiih", kind::pure},
    {"MPI_Type_create_subarray", ".iii..h", kind::pure},
    {"MPI_Type_create_resized", "...h", kind::pure},
    {"MPI_Type_commit", "H", kind::pure},
    {"MPI_Type_free", "H", kind::pure},
    {"MPI_Type_size", ".u", kind::pure},
    {"MPI_Type_get_extent", ".uu", kind::pure},
    {"MPI_Get_address", ".o", kind::own},
    {"MPI_Get_count", "i.o", kind::own},
    {"MPI_Op_create", "c.h", kind::pure},
    {"MPI_Op_free", "H", kind::pure},
    {"MPI_Pack", "i..b.b.", kind::pure},
    {"MPI_Unpack", "i.bo...", kind::pure},
    {"MPI_Pack_size", "...o", kind::own},
    {"MPI_Send", "i.....", kind::sends, {}, 4},
    {"MPI_Ssend", "i.....", kind::sends, {}, 4},
    {"MPI_Rsend", "i.....", kind::sends, {}, 4},
    {"MPI_Recv", "o.....o", kind::sends, {}, -1, 4},
    {"MPI_Sendrecv", "i....o.....o", kind::sends, {}, 4, 9},
    {"MPI_Sendrecv_replace", "b.......o", kind::sends, {}, 4, 6},
    {"MPI_Probe", "...o", kind::sends},
    {"MPI_Iprobe", "...oo", kind::sends},
    {"MPI_Isend", "i.....R", kind::sends, {}, 4},
    {"MPI_Issend", "i.....R", kind::sends, {}, 4},
    {"MPI_Irsend", "i.....R", kind::sends, {}, 4},
    {"MPI_Irecv", "o.....R", kind::sends, {}, -1, 4},
    {"MPI_Send_init", "e.....P", kind::sends, {}, 4},
    {"MPI_Ssend_init", "e.....P", kind::sends, {}, 4},
    {"MPI_Recv_init", "e.....P", kind::sends, {}, -1, 4},
    {"MPI_Start", "S", kind::sends},
    {"MPI_Startall", ".T", kind::sends},
    {"MPI_Wait", "Wo", kind::sends},
    {"MPI_Waitall", ".Ao", kind::sends},
    {"MPI_Waitany", ".Xoo", kind::sends},
    {"MPI_Waitsome", ".Xooo", kind::sends},
    {"MPI_Test", "Xoo", kind::sends},
    {"MPI_Testall", ".Xoo", kind::sends},
    {"MPI_Testany", ".Xooo", kind::sends},
    {"MPI_Request_free", "X", kind::sends},
    {"MPI_Barrier", ".", kind::collective},
    {"MPI_Bcast", "U....", kind::collective},
    {"MPI_Reduce", "io.....", kind::collective},
    {"MPI_Allreduce", "iu....", kind::collective},
    {"MPI_Reduce_scatter", "ioi...", kind::collective},
    {"MPI_Reduce_scatter_block", "io....", kind::collective},
    {"MPI_Scan", "io....", kind::collective},
    {"MPI_Exscan", "io....", kind::collective},
    {"MPI_Gather", "i..o....", kind::collective},
    {"MPI_Gatherv", "i..oii...", kind::collective},
    {"MPI_Scatter", "i..o....", kind::collective},
    {"MPI_Scatterv", "iii.o....", kind::collective},
    {"MPI_Allgather", "i..u...", kind::collective},
    {"MPI_Allgatherv", "i..uii..", kind::collective},
    {"MPI_Alltoall", "i..o...", kind::collective},
    {"MPI_Alltoallv", "iii.oii..", kind::collective},
    {"MPI_Ibarrier", ".R", kind::collective},
    {"MPI_Ibcast", "b....R", kind::collective},
    {"MPI_Iallreduce", "io....R", kind::collective},
    {"MPI_Ireduce", "io.....R", kind::collective},
    {"MPI_Iallgather", "i..o...R", kind::collective},
    {"MPI_Ialltoall", "i..o...R", kind::collective},
    {"MPI_File_open", "....M", kind::collective},
    {"MPI_File_close", "m", kind::collective},
    {"MPI_File_set_view", "......", kind::collective},
    {"MPI_File_write_at", "..i..o", kind::own},
    {"MPI_File_write_at_all", "..i..o", kind::collective},
    {"MPI_File_write_all", ".i..o", kind::collective},
    {"MPI_File_read_at", "..o..o", kind::own},
    {"MPI_File_read_at_all", "..o..o", kind::collective},
    {"MPI_Win_create", ".....N", kind::collective},
    {"MPI_Win_allocate", "....oN", kind::collective},
    {"MPI_Win_free", "n", kind::collective},
    {"MPI_Win_fence", "..", kind::collective},
    {"MPI_Win_lock", "....", kind::own},
    {"MPI_Win_unlock", "..", kind::own},
    {"MPI_Put", "i.......", kind::own},
    {"MPI_Get", "o.......", kind::own},
    {"MPI_Accumulate", "i........", kind::own},
    {"MPI_Comm_spawn", "........", kind::refused, "processes that the program spawns"},
    {"MPI_Comm_spawn_multiple", ".........", kind::refused, "processes that the program spawns"},
    {"MPI_Comm_connect", ".....", kind::refused, "communicators with other jobs"},
    {"MPI_Comm_accept", ".....", kind::refused, "communicators with other jobs"},
    {"MPI_Alloc_mem", "..o", kind::refused, "memory of MPI_Alloc_mem()"},
    {"MPI_Buffer_attach", "..", kind::refused, "an attached buffer"},
    {"MPI_Bsend", "i.....", kind::refused, "messages that are buffered (MPI_Bsend)"},
};

constexpr std::string_view numbers = "random numbers' state, which is libc's";
constexpr std::string_view threads = "threads";
constexpr std::string_view jumps = "what setjmp() saves";
constexpr std::string_view descriptors = "file descriptors";
constexpr std::string_view handlers = "handlers of signals and of exit()";

constexpr known_call library_calls[] = {
    {"malloc", ".", kind::allocates},
    {"calloc", "..", kind::allocates},
    {"realloc", "e.", kind::allocates},
    {"aligned_alloc", "..", kind::allocates},
    {"posix_memalign", "o..", kind::allocates},
    {"strdup", "i", kind::allocates},
    {"free", ".", kind::pure},
    {"exit", ".", kind::ends},
    {"_exit", ".", kind::ends},
    {"abort", "", kind::ends},
    {"__assert_fail", "ii.i", kind::ends},
    {"printf", "i*", kind::pure},
    {"va_start", "o.", kind::pure},
    {"va_end", "b", kind::pure},
    {"va_copy", "oi", kind::pure},
    {"vprintf", "ib", kind::pure},
    {"vfprintf", "bib", kind::pure},
    {"vsnprintf", "o.ib", kind::pure},
    {"expect", "..", kind::pure},
    {"getopt", "..i", kind::pure},
    {"getopt_long", "..iio", kind::pure},
    {"popcount", ".", kind::pure},
    {"popcountl", ".", kind::pure},
    {"popcountll", ".", kind::pure},
    {"clz", ".", kind::pure},
    {"clzl", ".", kind::pure},
    {"ctz", ".", kind::pure},
    {"ctzl", ".", kind::pure},
    {"bswap32", ".", kind::pure},
    {"bswap64", ".", kind::pure},
    {"access", "i.", kind::own},
    {"puts", "i", kind::pure},
    {"putchar", ".", kind::pure},
    {"perror", "i", kind::pure},
    {"fprintf", "bi*", kind::pure},
    {"fputs", "ib", kind::pure},
    {"fputc", ".b", kind::pure},
    {"fwrite", "i..b", kind::pure},
    {"fflush", "b", kind::pure},
    {"snprintf", "o.i*", kind::pure},
    {"sprintf", "oi*", kind::pure},
    {"sscanf", "iio*", kind::pure},
    {"fopen", "ii", kind::own},
    {"fclose", "f", kind::pure},
    {"fgets", "o.b", kind::own},
    {"fgetc", "b", kind::own},
    {"fread", "o..b", kind::own},
    {"fscanf", "bio*", kind::own},
    {"feof", "i", kind::own},
    {"ferror", "i", kind::own},
    {"fseek", "b..", kind::own},
    {"rewind", "b", kind::own},
    {"memcpy", "oi.", kind::pure},
    {"memmove", "oi.", kind::pure},
    {"memset", "o..", kind::pure},
    {"memcmp", "ii.", kind::pure},
    {"strlen", "i", kind::pure},
    {"strcmp", "ii", kind::pure},
    {"strncmp", "ii.", kind::pure},
    {"strcasecmp", "ii", kind::pure},
    {"strcpy", "oi", kind::pure},
    {"strncpy", "oi.", kind::pure},
    {"strcat", "bi", kind::pure},
    {"strncat", "bi.", kind::pure},
    {"strerror", ".", kind::pure},
    {"atoi", "i", kind::pure},
    {"atol", "i", kind::pure},
    {"atoll", "i", kind::pure},
    {"atof", "i", kind::pure},
    {"strtol", "io.", kind::pure},
    {"strtoul", "io.", kind::pure},
    {"strtoll", "io.", kind::pure},
    {"strtod", "io", kind::pure},
    {"abs", ".", kind::pure},
    {"labs", ".", kind::pure},
    {"qsort", "b..c", kind::pure},
    {"bsearch", "ei..c", kind::pure},
    {"isdigit", ".", kind::pure},
    {"isspace", ".", kind::pure},
    {"isalpha", ".", kind::pure},
    {"toupper", ".", kind::pure},
    {"tolower", ".", kind::pure},
    {"rand_r", "b", kind::pure},
    {"erand48", "b", kind::pure},
    {"nrand48", "b", kind::pure},
    {"time", "o", kind::own},
    {"clock", "", kind::own},
    {"clock_gettime", ".o", kind::own},
    {"gettimeofday", "oo", kind::own},
    {"nanosleep", "io", kind::pure},
    {"usleep", ".", kind::pure},
    {"sleep", ".", kind::pure},
    {"getpid", "", kind::own},
    {"gethostname", "o.", kind::own},
    {"getenv", "i", kind::own},
    {"__errno_location", "", kind::own},
    {"rand", "", kind::refused, numbers},
    {"srand", ".", kind::refused, numbers},
    {"srandom", ".", kind::refused, numbers},
    {"srand48", ".", kind::refused, numbers},
    {"random", "", kind::refused, numbers},
    {"drand48", "", kind::refused, numbers},
    {"lrand48", "", kind::refused, numbers},
    {"mrand48", "", kind::refused, numbers},
    {"strtok", "bi", kind::refused, "strtok()'s place"},
    {"setjmp", "o", kind::refused, jumps},
    {"_setjmp", "o", kind::refused, jumps},
    {"__sigsetjmp", "o.", kind::refused, jumps},
    {"sigsetjmp", "o.", kind::refused, jumps},
    {"longjmp", "i.", kind::refused, jumps},
    {"pthread_create", "oi.e", kind::refused, threads},
    {"thrd_create", "oce", kind::refused, threads},
    {"fork", "", kind::refused, "processes of the program's own"},
    {"system", "i", kind::refused, "processes of the program's own"},
    {"popen", "ii", kind::refused, "processes of the program's own"},
    {"signal", ".e", kind::refused, handlers},
    {"sigaction", ".ii", kind::refused, handlers},
    {"atexit", "e", kind::refused, handlers},
    {"open", "i..", kind::refused, descriptors},
    {"socket", "...", kind::refused, descriptors},
    {"pipe", "o", kind::refused, descriptors},
    {"mmap", "......", kind::refused, "mappings"},
    {"shmat", "...", kind::refused, "shared memory"},
    {"dlopen", "i.", kind::refused, "libraries that are loaded by dlopen()"},
    {"alloca", ".", kind::refused, "memory of alloca()"},
    {"__builtin_alloca", ".", kind::refused, "memory of alloca()"},
};

/* Functions of numbers, as in <math.h>: also those that end in f and l. */
constexpr std::string_view of_numbers[] = {
    "acos",   "acosh",    "asin",     "asinh",     "atan",  "atan2",     "atanh", "cbrt",
    "ceil",   "copysign", "cos",      "cosh",      "erf",   "erfc",      "exp",   "exp2",
    "expm1",  "fabs",     "fdim",     "floor",     "fma",   "fmax",      "fmin",  "fmod",
    "hypot",  "ldexp",    "log",      "log10",     "log1p", "log2",      "lrint", "lround",
    "llrint", "llround",  "modf",     "nearbyint", "pow",   "remainder", "rint",  "round",
    "scalbn", "sin",      "sinh",     "sqrt",      "tan",   "tanh",      "trunc", "cabs",
    "cexp",   "creal",    "cimag",    "conj",      "csqrt", "cpow",      "carg",  "tgamma",
    "lgamma", "isnan",    "isfinite", "isinf"};

std::map<std::string_view, const known_call *> make_index()
{
    std::map<std::string_view, const known_call *> index;
    for (const auto &one : mpi_calls)
        index[one.name] = &one;
    for (const auto &one : library_calls)
        index[one.name] = &one;
    return index;
}

} // namespace

char known_call::effect(unsigned number) const noexcept
{
    if (number < arguments.size() && arguments[number] != '*')
        return arguments[number];
    if (arguments.size() > 1 && arguments.back() == '*')
        return arguments[arguments.size() - 2];
    return '.';
}

const known_call *find_known(std::string_view name)
{
    static const auto index = make_index();
    static constexpr known_call number{"", "o*", kind::pure};
    if (name.substr(0, 10) == "__builtin_" && name != "__builtin_alloca")
        name.remove_prefix(10);
    if (const auto found = index.find(name); found != index.end())
        return found->second;
    for (const auto one : of_numbers)
        if (name == one || (name.size() == one.size() + 1 && name.substr(0, one.size()) == one &&
                            (name.back() == 'f' || name.back() == 'l')))
            return &number;
    return nullptr;
}

} // namespace zc::instrument
