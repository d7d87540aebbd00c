/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoint_directory.h"

#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

#include "disk_writer.h"
#include "error.h"

namespace zc::migrate {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string rank_name(int rank)
{
    return "rank-" + std::to_string(rank) + ".h5";
}

/* The errno that rank @rank left in @directory, 0 if none. */
int failure_of(const std::string &directory, int rank)
{
    const std::string prefix = "rank-" + std::to_string(rank) + ".failed-";
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(directory, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with(prefix))
            return std::atoi(name.c_str() + prefix.size());
    }
    return 0;
}

} // namespace

checkpoint_directory::checkpoint_directory(std::string directory, std::int64_t safe_point,
                                           std::string nonce)
    : directory_(std::move(directory)), name_("at-" + std::to_string(safe_point)),
      nonce_(std::move(nonce)), safe_point_(safe_point)
{
}

std::string checkpoint_directory::part() const
{
    return directory_ + "/" + name_ + ".part-" + nonce_;
}

void checkpoint_directory::prepare() const
{
    std::error_code problem;
    fs::create_directories(part(), problem);
    if (problem)
        throw_errno(problem.value(), part());
}

void checkpoint_directory::write_rank(int rank, std::span<const std::byte> image) const
{
    prepare();
    const std::string file = part() + "/" + rank_name(rank);
    try {
        write_durably(file, image);
    } catch (const error &problem) {
        const std::string note = part() + "/rank-" + std::to_string(rank) + ".failed-" +
                                 std::to_string(problem.code());
        const int fd = open(note.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
        throw;
    }
}

void checkpoint_directory::commit(int ranks, double timeout_s) const
{
    using clock = std::chrono::steady_clock;
    const auto deadline = clock::now() + std::chrono::duration<double>(timeout_s);
    try {
        int failed_rank = -1, failure = 0;
        for (int rank = 0; rank < ranks;) {
            const int code = failure_of(part(), rank);
            if (code && failed_rank < 0) {
                failed_rank = rank;
                failure = code;
            }
            if (code || fs::exists(part() + "/" + rank_name(rank))) {
                rank++;
                continue;
            }
            if (clock::now() > deadline)
                throw error(ETIMEDOUT, "rank " + std::to_string(rank) + " has not written its part of " +
                                           directory_ + "/" + name_ + " in time");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        if (failed_rank >= 0)
            throw_errno(failure, "rank " + std::to_string(failed_rank) +
                                     " could not write its part of " + directory_ + "/" + name_);
        const std::string manifest =
            json{{"format", "zcm 1"}, {"ranks", ranks}, {"safe_point", safe_point_}}.dump(1) + "\n";
        write_durably(part() + "/manifest.json", std::as_bytes(std::span(manifest)));

        const std::string whole = directory_ + "/" + name_, link = directory_ + "/latest";
        fs::remove_all(whole); /* of an earlier run that came to the same place */
        fs::rename(part(), whole);
        fs::remove(link + ".part");
        fs::create_symlink(name_, link + ".part");
        fs::rename(link + ".part", link);
        sync_directory(directory_);
        remove_others();
    } catch (const fs::filesystem_error &problem) {
        throw error(problem.code().value(), problem.what());
    } catch (const error &) {
        std::error_code ignored;
        fs::remove_all(part(), ignored);
        throw;
    }
}

void checkpoint_directory::remove_others() const
{
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(directory_, ignored)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("at-") && name != name_)
            fs::remove_all(entry.path(), ignored);
    }
}

std::string checkpoint_directory::complete::rank_file(int rank) const
{
    return directory + "/" + rank_name(rank);
}

checkpoint_directory::complete checkpoint_directory::latest(const std::string &directory)
{
    std::error_code problem;
    const fs::path target = fs::read_symlink(directory + "/latest", problem);
    if (problem)
        throw error(ENOENT, "no complete checkpoint in " + directory);
    complete found{directory + "/" + target.string(), 0, 0};
    try {
        std::ifstream file(found.directory + "/manifest.json");
        const json manifest = json::parse(file);
        found.ranks = manifest.at("ranks");
        found.safe_point = manifest.at("safe_point");
        if (manifest.at("format") != "zcm 1")
            throw error(EBADMSG, "checkpoint of an unknown format: " + found.directory);
    } catch (const json::exception &) {
        throw error(EBADMSG, "damaged checkpoint: " + found.directory + "/manifest.json");
    }
    for (int rank = 0; rank < found.ranks; rank++)
        if (!fs::exists(found.rank_file(rank), problem))
            throw error(EBADMSG, "damaged checkpoint: no " + found.rank_file(rank));
    return found;
}

} // namespace zc::migrate
