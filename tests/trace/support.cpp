/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace fs = std::filesystem;

namespace zc::zct::test {

scratch_folder::scratch_folder()
{
    std::string name = (fs::temp_directory_path() / "zct-test-XXXXXX").string();
    if (!mkdtemp(name.data()))
        throw std::runtime_error("mkdtemp");
    path_ = name;
}

scratch_folder::~scratch_folder()
{
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

rank_file::rank_file(const scratch_folder &folder, std::int32_t rank, std::int32_t processes,
                     std::uint64_t run, bool calls)
{
    const zct_head head = {static_cast<std::uint32_t>(rank),
                           static_cast<std::uint32_t>(processes),
                           run,
                           1700000000000000000,
                           "some MPI",
                           "program",
                           "program -x \"1\"",
                           "host",
                           calls};
    if (zct_writer_open(&writer_, folder.file(rank).c_str(), &head) != 0)
        throw std::runtime_error("zct_writer_open");
    std::vector<int> world(static_cast<std::size_t>(processes));
    std::iota(world.begin(), world.end(), 0);
    zct_write_communicator(&writer_, world.data(), world.size(), nullptr, 0);
}

void rank_file::send(std::int64_t time, std::int32_t peer, std::int32_t tag, std::uint64_t bytes,
                     std::uint32_t comm)
{
    zct_write_send(&writer_, time, comm, peer, tag, bytes);
}

void rank_file::receive(std::int64_t posted, std::int64_t done, std::int32_t peer, std::int32_t tag,
                        std::uint64_t bytes, std::uint64_t addr, std::uint32_t comm)
{
    const std::uint64_t order = zct_writer_begin(&writer_);
    const zct_receive r = {posted, done, order, order, comm, peer, tag, bytes, addr};
    zct_write_receive(&writer_, &r);
}

void rank_file::close(bool finished)
{
    if (open_)
        zct_writer_close(&writer_, finished);
    open_ = false;
}

std::vector<std::uint8_t> bytes_of(const fs::path &file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path &file, const std::vector<std::uint8_t> &bytes)
{
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char *>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
}

long growth_by(const std::function<void()> &something)
{
    int to_us[2];
    if (pipe(to_us) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        struct rusage before = {};
        struct rusage after = {};
        getrusage(RUSAGE_SELF, &before);
        long grown = -1;
        try {
            something();
            getrusage(RUSAGE_SELF, &after);
            grown = after.ru_maxrss - before.ru_maxrss;
        } catch (const std::exception &) {
        }
        _exit(write(to_us[1], &grown, sizeof(grown)) != sizeof(grown));
    }
    close(to_us[1]);
    long grown = -1;
    if (read(to_us[0], &grown, sizeof(grown)) != sizeof(grown))
        grown = -1;
    close(to_us[0]);
    waitpid(child, nullptr, 0);
    return grown;
}

} // namespace zc::zct::test
