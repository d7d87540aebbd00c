/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <clang/AST/ASTContext.h>
#include <clang/AST/Type.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zc::instrument {

class program;

/** What a type's memory holds; the same as in runtime/zcm_state.c, by the same names. */
struct field {
    enum class kind { basic, record, pointer, handle, request };
    std::uint64_t offset, count;
    kind what;
    int of;           /* record, pointer: number of a layout; -1: only parts of the program */
    std::string type; /* basic: its name there */
    std::uint64_t size;
};

struct layout {
    std::string name;
    std::uint64_t size = 0;
    std::vector<field> fields;
};

/** The layouts of all types that live data has, or that its pointers lead to. */
class layouts {
  public:
    /** The number of that of @type, or why there is none. */
    struct outcome {
        int number = -1;
        std::string refused; /* empty: @number is good */
    };
    outcome of(const clang::ASTContext &context, clang::QualType type, const std::string &name);
    /**
     * @all: where types are completed that are incomplete in another source
     * @persistent: fields, by key, whose requests the initialisation makes
     * @streams: fields that are stdout or stderr, which it chooses
     * @reused: structs, by name, whose memory holds something else, too
     */
    explicit layouts(const program *all = nullptr, std::set<std::string> persistent = {},
                     std::set<std::string> streams = {}, std::set<std::string> reused = {})
        : program_(all), persistent_(std::move(persistent)), streams_(std::move(streams)),
          reused_(std::move(reused))
    {
    }

    const std::vector<layout> &all() const { return all_; }
    bool has_pointers(int number) const;
    /** Is there anything but handles and requests? */
    bool is_saved(int number) const;

    /** The elements of an array of arrays; of another type that itself. */
    static clang::QualType element_of(const clang::ASTContext &context, clang::QualType type);
    static std::string name_of(clang::QualType type);
    /** The name of the type of MPI that @type is (MPI_Comm), or an empty one. */
    static std::string opaque(clang::QualType type);

  private:
    void add(const clang::ASTContext &context, clang::QualType type, std::uint64_t offset,
             std::uint64_t count, const std::string &name, layout &to);
    void add_record(const clang::ASTContext &context, const clang::RecordDecl *record,
                    clang::QualType type, std::uint64_t offset, std::uint64_t count,
                    const std::string &name, layout &to);
    void add_pointer(const clang::ASTContext &context, clang::QualType type, std::uint64_t offset,
                     std::uint64_t count, const std::string &name, layout &to);
    int number_of(const clang::ASTContext &context, clang::QualType type, const std::string &name);
    void refuse(const std::string &why);
    static void fill_gaps(layout &made);

    std::vector<layout> all_;
    std::map<std::string, int> numbers_;
    std::map<int, std::string> refused_; /* by layout; those that lead to it are not known to be */
    std::string why_;
    const program *program_;
    std::set<std::string> persistent_, streams_, reused_;
};

/** Structs, by name, whose memory is used as something else, too: what is between their fields is a
 * part of that. */
std::set<std::string> reused_structs(const program &all);

} // namespace zc::instrument
