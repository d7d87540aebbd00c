/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_PROMISED_ROOM_H_INCLUDED
#define ZC_HOLDER_PROMISED_ROOM_H_INCLUDED

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "descriptor.h"
#include "store_room.h"

namespace zc::holder {

/**
 * Memory of this host that a rank on its way here was promised, or one that leaves, for its image,
 * as long as this object is there.
 * What of it the rank has taken is no longer counted, since the host has that much less.
 *
 * All processes of a user look at one file, in memory, where images are. It begins with a byte that
 * is locked by whoever adds up what is promised and promises more, for that moment; behind it are
 * records, each locked by the process that has the promise. Nobody has to remove a record: the
 * kernel unlocks it when the process ends, however it ends, and a record without a lock is none. So
 * there is no service to be asked or to fail, and no clean-up that a SIGKILL could prevent. A
 * number of a process in the record would not do, since it may be another's by now, and holders may
 * be in PID namespaces of their own. The locks are those of open file descriptions (F_OFD_SETLK in
 * fcntl(2)), so a listener locks a record and hands it to the holder that it starts, with the
 * descriptor: at no moment is it nobody's.
 *
 * The file is believed no more than that it is this user's: it is of mode 0600, and whatever it
 * says is a number. Wrong numbers refuse moves, or promise too much, but only to this user, who
 * could end all of these processes as well. Other users' promises are not seen.
 */
class promised_room {
  public:
    static constexpr unsigned kMost = 256; /* records, beyond which there can be no promise */
    /** What to promise to a rank of so many KiB, when @others have been promised something; or
     * nothing. */
    using decision = std::function<std::optional<host_memory>(const promised_memory &others)>;

    /** None. */
    promised_room() = default;
    /** The one that another process has handed over with the descriptor @fd. Throws error. */
    explicit promised_room(int fd);
    /** What @decide says, which is called while nobody else promises anything; none, if it promises
     * nothing. @kib: of the rank. @path: the file. Throws error if the file cannot be used: then
     * @decide was not called. */
    static promised_room make(std::uint64_t kib, const decision &decide,
                              const std::string &path = where());
    /** What all have that have a promise. Throws error. */
    static promised_memory made(const std::string &path = where());
    /** The file of this user. */
    static std::string where();

    /** To be handed over; -1: this is none. */
    int fd() const noexcept { return file_.fd; }
    /** So many KiB of what is sent are here, of all that will be. */
    void came(std::uint64_t kib);
    /** All that is sent is here, and now the rank gets its own memory, of which it has so much. */
    void rank_has(std::uint64_t kib);

  private:
    /** KiB, but the last one. In the file as it is here: all processes are of this host. */
    struct record {
        std::uint64_t memory, shared; /* not taken yet */
        std::uint64_t rank;
        std::uint64_t group; /* what the limits of its maker's control groups are known by */
    };

    static descriptor locked(const std::string &path);
    static promised_memory sum_of(int fd);
    void set(const host_memory &left);

    descriptor file_; /* its position is where the record is */
    record all_{}, now_{};
};

} // namespace zc::holder

#endif
