/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_HOLDER_NAMESPACE_RECORD_H_INCLUDED
#define ZC_HOLDER_NAMESPACE_RECORD_H_INCLUDED

#include <string>

#include <sys/types.h>

#include "descriptor.h"

namespace zc::holder {

/**
 * A file that names the processes of this user's in a user namespace that more are to enter, a line
 * for each: its number, and that of the namespace, as the former may be another's by now. It is
 * locked as long as this object is there, so that of those that begin at once one makes the
 * namespace. Where none of the processes runs any more, the next one of another job removes it.
 */
class namespace_record {
  public:
    /** Of the job @job, for processes of the caller's group, on this host. Throws error: that there
     * is no folder for it, what the system says, EBUSY if it is locked for long. */
    explicit namespace_record(const std::string &job);
    /** The namespace of a process that runs, whose user and group are the caller's; or none. */
    descriptor found() const;
    /** This process is in the namespace @space now. */
    void add(const descriptor &space, bool is_new);

  private:
    descriptor file_;
};

/** 0: there is none. */
ino_t number_of_namespace(const descriptor &space);

} // namespace zc::holder

#endif
