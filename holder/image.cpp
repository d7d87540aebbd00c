/* SPDX-License-Identifier: BSD-3-Clause */
#include "image.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32c.h"
#include "error.h"

namespace zc::holder {
namespace {

constexpr std::size_t kLongestLine = 4096;

std::string line_of(const nlohmann::json &what)
{
    return what.dump() + "\n";
}

} // namespace

image_sender::image_sender(const nlohmann::json &manifest, const std::string &directory)
{
    const std::vector<std::uint8_t> coded = nlohmann::json::to_cbor(manifest);
    head_ = line_of({{"manifest", coded.size()}});
    head_.append(coded.begin(), coded.end());
    for (const auto &entry : std::filesystem::directory_iterator(directory)) {
        if (entry.is_regular_file() && entry.path().extension() == ".img")
            files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
}

void image_sender::add(outgoing &to, std::string_view bytes)
{
    crc_ = zc_crc32c(crc_, bytes.data(), bytes.size());
    bytes_ += bytes.size();
    to.push(bytes);
}

bool image_sender::push(outgoing &to)
{
    std::string buffer;
    while (!done_ && to.room() >= outgoing::kLongest) {
        if (!head_.empty()) {
            add(to, head_);
            head_.clear();
        } else if (file_.fd >= 0) {
            buffer.resize(outgoing::kLongest);
            const ssize_t got = read(file_.fd, buffer.data(), buffer.size());
            if (got < 0)
                throw_errno(errno, files_[next_ - 1]);
            if (got == 0)
                file_ = descriptor{};
            add(to, {buffer.data(), static_cast<std::size_t>(got)});
        } else if (next_ < files_.size()) {
            const std::string &path = files_[next_++];
            file_ = descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
            struct stat found;
            if (file_.fd < 0 || fstat(file_.fd, &found) != 0)
                throw_errno(errno, path);
            add(to, line_of({{"name", std::filesystem::path(path).filename()},
                             {"bytes", found.st_size}}));
        } else {
            to.push(line_of({{"crc", crc_}}));
            done_ = true;
        }
    }
    return done_;
}

bool image_receiver::take_content(const std::string &bytes, std::size_t &at)
{
    const std::size_t part = std::min<std::uint64_t>(left_, bytes.size() - at);
    if (in_manifest_)
        manifest_bytes_.append(bytes, at, part);
    for (std::size_t put = 0; !in_manifest_ && put < part;) {
        const ssize_t written = write(file_.fd, bytes.data() + at + put, part - put);
        if (written < 0)
            throw_errno(errno, directory_);
        put += static_cast<std::size_t>(written);
    }
    crc_ = zc_crc32c(crc_, bytes.data() + at, part);
    at += part;
    left_ -= part;
    if (left_ == 0 && in_manifest_) {
        in_manifest_ = false;
        manifest_ = nlohmann::json::from_cbor(manifest_bytes_, true, false);
    }
    return part > 0;
}

bool image_receiver::take_line(const std::string &bytes, std::size_t &at)
{
    const std::size_t end = bytes.find('\n', at);
    if (end == std::string::npos) {
        if (bytes.size() - at > kLongestLine)
            throw error(EBADMSG, "the image has a line that is too long");
        return false;
    }
    const auto said = nlohmann::json::parse(bytes.substr(at, end - at), nullptr, false);
    const std::size_t begin = at;
    at = end + 1;
    if (said.is_object() && said.contains("crc")) {
        if (said["crc"] != crc_)
            throw error(EBADMSG, "the image has arrived damaged");
        done_ = true;
        return false;
    }
    crc_ = zc_crc32c(crc_, bytes.data() + begin, at - begin);
    if (said.is_object() && said.contains("manifest")) {
        in_manifest_ = true;
        left_ = said["manifest"];
    } else if (said.is_object() && said.contains("name") && said.contains("bytes")) {
        const std::string name = said["name"];
        if (name.empty() || name.find('/') != std::string::npos || name.front() == '.')
            throw error(EBADMSG, "the image names a file " + name);
        file_ = descriptor{open((directory_ + "/" + name).c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
        if (file_.fd < 0)
            throw_errno(errno, name);
        left_ = said["bytes"];
    } else {
        throw error(EBADMSG, "the image has a line that is none of its kinds");
    }
    return true;
}

std::optional<nlohmann::json> image_receiver::take(incoming &from)
{
    const std::string &bytes = from.bytes();
    std::size_t at = 0;
    while (!done_ && (left_ > 0 ? take_content(bytes, at) : take_line(bytes, at)))
        continue;
    from.use(at);
    if (!done_)
        return {};
    file_ = descriptor{};
    if (!manifest_.is_object())
        throw error(EBADMSG, "the image has no manifest");
    return manifest_;
}

} // namespace zc::holder
