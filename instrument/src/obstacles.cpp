/* SPDX-License-Identifier: BSD-3-Clause */
#include "obstacles.h"

#include "assignments.h"
#include "beginning.h"
#include "iteration.h"

#include <clang/AST/Attr.h>
#include <clang/AST/StmtOpenMP.h>

#include <algorithm>

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;
using llvm::isa_and_nonnull;

namespace {

class search {
  public:
    search(const program &all, const call_graph &calls, const accesses &used,
           const resources &opened, const loop &at)
        : program_(all), calls_(calls), used_(used), opened_(opened), loop_(at),
          now_(all, calls, used, at), cycle_(cycle_of(at)), before_(calls_before(all, calls, at))
    {
        const auto *main = all.find("main");
        reached_ = calls.closure({main});
        for (const auto &[in, call] : calls.calls_below(*cycle_.in, cycle_.statement))
            later_.insert(call);
        for_each_statement(all, [this](const function *, const clang::Stmt *each) {
            const auto *call = dyn_cast_or_null<clang::CallExpr>(each);
            const auto *callee = call ? callee_of(call) : nullptr;
            takes_addresses_ |= callee && callee->getNameAsString() == "MPI_Get_address";
        });
        look_for_stdin(*cycle_.in, cycle_.statement);
        for (const auto &[in, call] : at.way)
            add_later(*in, call ? static_cast<const clang::Stmt *>(call) : at.statement);
    }

    findings find()
    {
        for (const auto *one : reached_) {
            in_ = one;
            for_each_statement(one->decl->getBody(), [this](const clang::Stmt *each) {
                if (!each)
                    return;
                if (const auto *call = dyn_cast<clang::CallExpr>(each))
                    look_at_call(call);
                else if (const auto *cast = dyn_cast<clang::CastExpr>(each))
                    look_at_cast(cast);
                else if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(each))
                    look_at_literal(literal);
                else if (isa<clang::AtomicExpr>(each))
                    refuse(each, "an atomic operation: what it changes is not followed");
                else if (isa<clang::OMPExecutableDirective>(each))
                    refuse(each, "threads of OpenMP do not move");
                else if (isa<clang::AsmStmt>(each))
                    refuse(each, "assembler: what it does is not known");
                else if (isa<clang::IndirectGotoStmt>(each))
                    refuse(each, "a goto to a computed label");
            });
        }
        look_at_attributes();
        look_at_numbers();
        find_handles();
        std::sort(found_.begin(), found_.end());
        found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
        return std::move(found_);
    }

  private:
    void refuse(const clang::Stmt *at, const std::string &why)
    {
        found_.push_back({in_->place(at), why});
    }

    /* What names something else, or is run without being called. */
    void look_at_attributes()
    {
        const auto look = [this](const clang::Decl *one) {
            const auto &context = one->getASTContext();
            if (context.getSourceManager().isInSystemHeader(one->getLocation()))
                return;
            const auto add = [&](const char *why) {
                found_.push_back({place_of(context, one->getLocation()), why});
            };
            if (one->hasAttr<clang::CleanupAttr>())
                add("a function that is called where a variable's scope ends (cleanup)");
            if (one->hasAttr<clang::ConstructorAttr>() || one->hasAttr<clang::DestructorAttr>())
                add("a function that is called before or behind main() (constructor, destructor)");
            if (one->hasAttr<clang::AliasAttr>() || one->hasAttr<clang::IFuncAttr>() ||
                one->hasAttr<clang::WeakRefAttr>())
                add("another name of a variable or function (alias)");
        };
        for (const auto &unit : program_.units())
            for (auto it = unit->top_level_begin(); it != unit->top_level_end(); ++it)
                look(*it);
        for (const auto *one : reached_)
            for_each_statement(one->decl->getBody(), [&look](const clang::Stmt *each) {
                if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
                    for (const auto *decl : declaration->decls())
                        look(decl);
            });
    }

    /* A handle that is a number is another one in a successor, and would be replaced there by that
     * of its predecessor. */
    void look_at_numbers()
    {
        for (const auto &one : assignments_of(program_)) {
            const auto handle = layouts::opaque(one.value->IgnoreParens()->getType());
            const auto *inner = one.value->IgnoreParenImpCasts();
            if ((handle.empty() && layouts::opaque(inner->getType()).empty()) ||
                !layouts::opaque(one.type).empty() ||
                !(one.type->isIntegerType() || one.type->isVoidPointerType()) ||
                (one.in && !reached_.count(one.in)))
                continue;
            in_ = one.in ? one.in : program_.find("main");
            refuse(one.value, "a handle of MPI is kept as a number or as a pointer to void");
        }
    }

    /* What has been read of it by then is not there for a successor, which has another one. */
    void look_at_stdin(const function &in, const clang::Stmt *each)
    {
        const auto *reference = dyn_cast_or_null<clang::DeclRefExpr>(each);
        if (reference && reference->getDecl()->getName() == "stdin" &&
            isa<clang::VarDecl>(reference->getDecl()) && !program_.globals().count("stdin"))
            found_.push_back({in.place(each),
                              "stdin is used at the safe point or behind it, and does not move"});
    }

    /* In @root, or all of @in, and what that calls. */
    void look_for_stdin(const function &in, const clang::Stmt *root)
    {
        root = root ? root : in.decl->getBody();
        const auto look = [this](const function &one, const clang::Stmt *from) {
            for_each_statement(from, [&](const clang::Stmt *each) { look_at_stdin(one, each); });
        };
        look(in, root);
        for (const auto *one : calls_.called_below(root))
            look(*one, one->decl->getBody());
    }

    /* Calls behind @point in @in, and what these call. */
    void add_later(const function &in, const clang::Stmt *point)
    {
        const auto &sources = in.context().getSourceManager();
        for_each_statement(in.decl->getBody(), [&](const clang::Stmt *each) {
            if (!each || each == point ||
                sources.isBeforeInTranslationUnit(each->getBeginLoc(), point->getBeginLoc()))
                return;
            look_at_stdin(in, each);
            const auto *call = dyn_cast<clang::CallExpr>(each);
            if (!call)
                return;
            later_.insert(call);
            for (const auto *below : calls_.called_below(call))
                look_for_stdin(*below, nullptr);
            for (const auto &[where, below] : calls_.calls_below(in, call))
                later_.insert(below);
        });
    }

    void look_at_call(const clang::CallExpr *call)
    {
        const auto *callee = callee_of(call);
        if (!callee || program_.find(callee))
            return;
        const std::string name = callee->getNameAsString();
        const auto *known = find_known(name);
        if (!known) {
            refuse(call, name + "() is not in the sources, and what it does is not known");
            return;
        }
        const bool is_of_start = known->why == "random numbers' state, which is libc's" ||
                                 known->why == "strtok()'s place";
        if (known->what == known_call::kind::refused && (!is_of_start || later_.count(call)))
            refuse(call, name + "(): " + std::string(known->why) +
                             (is_of_start ? " and cannot be saved" : " do not move"));
        for (unsigned i = 0; i < call->getNumArgs(); i++)
            if (known->effect(i) == 'P' &&
                resources::base_of(*in_, call->getArg(i), nullptr) == "?")
                refuse(call, name + "(): where the persistent request is kept is not followed");
        look_at_buffers(call, *known);
        if (!before_.count(call))
            return;
        if (const auto why = why_once(program_, call); !why.empty())
            refuse(call, why);
    }

    /* MPI_BOTTOM is NULL: what is sent or received is where a datatype says. As NULL is also the
     * buffer of those who send or receive nothing, it counts where there are addresses for one. */
    void look_at_buffers(const clang::CallExpr *call, const known_call &known)
    {
        const auto &context = in_->context();
        if (!takes_addresses_ || !known.is_communication())
            return;
        const auto is_own_type = [&](const clang::Expr *argument) {
            const auto *op = dyn_cast<clang::UnaryOperator>(argument->IgnoreParenCasts());
            return layouts::opaque(argument->getType()) == "MPI_Datatype" &&
                   !argument->isIntegerConstantExpr(context) &&
                   !(op && op->getOpcode() == clang::UO_AddrOf);
        };
        if (std::none_of(call->arg_begin(), call->arg_end(), is_own_type))
            return;
        for (unsigned i = 0; i < call->getNumArgs(); i++)
            if (std::string_view("iobuUe").find(known.effect(i)) != std::string_view::npos &&
                call->getArg(i)->getType()->isVoidPointerType() &&
                call->getArg(i)->isNullPointerConstant(in_->context(),
                                                       clang::Expr::NPC_ValueDependentIsNotNull))
                refuse(call, std::string(known.name) +
                                 "() with MPI_BOTTOM: what addresses in a datatype lead to is not "
                                 "followed");
    }

    /* What is not declared has no name by which it could be saved. In the loop it lives for an
     * iteration only. */
    void look_at_literal(const clang::CompoundLiteralExpr *literal)
    {
        const auto frame = std::find_if(loop_.way.begin(), loop_.way.end(),
                                        [this](const auto &one) { return one.in == in_; });
        const auto &sources = in_->context().getSourceManager();
        if (literal->isFileScope() || frame == loop_.way.end() ||
            !sources.isBeforeInTranslationUnit(
                literal->getBeginLoc(), (frame->call ? static_cast<const clang::Stmt *>(frame->call)
                                                     : body_of(loop_.statement))
                                            ->getBeginLoc()))
            return;
        const clang::Stmt *up = in_->parents->getParent(literal);
        bool is_address = false;
        while (isa_and_nonnull<clang::CastExpr, clang::ParenExpr, clang::UnaryOperator>(up)) {
            const auto *cast = dyn_cast<clang::CastExpr>(up);
            const auto *op = dyn_cast<clang::UnaryOperator>(up);
            if (cast && cast->getCastKind() == clang::CK_LValueToRValue)
                return;
            is_address |= (cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay) ||
                          (op && op->getOpcode() == clang::UO_AddrOf);
            up = in_->parents->getParent(up);
        }
        if (is_address && !isa_and_nonnull<clang::CallExpr>(up))
            refuse(literal, "the address of a compound literal is kept, which has no name to be "
                            "saved by");
    }

    static bool leads_to_pointers(clang::QualType pointer)
    {
        const auto to = pointer->getPointeeType();
        return !to.isNull() && (to->isPointerType() || has_pointer(to));
    }

    static bool has_pointer(clang::QualType type)
    {
        const auto *record = type->getAsRecordDecl();
        record = record ? record->getDefinition() : nullptr;
        if (!record)
            return false;
        return std::any_of(record->field_begin(), record->field_end(), [](const auto *member) {
            return member->getType()->isPointerType() || has_pointer(member->getType());
        });
    }

    void look_at_cast(const clang::CastExpr *cast)
    {
        const auto &context = in_->context();
        if (cast->getCastKind() == clang::CK_PointerToIntegral)
            refuse(cast, "a pointer becomes a number, which would be another one in a successor");
        if (cast->getCastKind() == clang::CK_IntegralToPointer &&
            !cast->getSubExpr()->isIntegerConstantExpr(context))
            refuse(cast, "a number becomes a pointer: what it leads to is not known");
        if (cast->getCastKind() != clang::CK_BitCast)
            return;
        const auto from = cast->getSubExpr()->getType(), to = cast->getType();
        if (!from->isPointerType() || !to->isPointerType())
            return;
        if (from->isVoidPointerType() || to->isVoidPointerType() || is_argument(cast) ||
            context.hasSameUnqualifiedType(from->getPointeeType(), to->getPointeeType()))
            return;
        if (leads_to_pointers(from) || leads_to_pointers(to))
            refuse(cast, "memory with pointers is used as another type (" + layouts::name_of(from) +
                             " as " + layouts::name_of(to) + ")");
    }

    /* As in posix_memalign((void **)&p, ...) */
    bool is_argument(const clang::CastExpr *cast) const
    {
        const auto *call = dyn_cast_or_null<clang::CallExpr>(
            in_->parents->getParentIgnoreParenCasts(const_cast<clang::CastExpr *>(cast)));
        const auto *callee = call ? callee_of(call) : nullptr;
        return callee && !program_.find(callee) && find_known(callee->getNameAsString());
    }

    /* A handle that is live at the safe point, and is another one in the next iteration. */
    void find_handles()
    {
        std::set<const function *> called;
        const auto look = [this](const function &in, const clang::Stmt *root) {
            in_ = &in;
            for_each_statement(root, [this](const clang::Stmt *each) {
                if (const auto *call = dyn_cast_or_null<clang::CallExpr>(each))
                    look_at_made(call);
                const auto *op = dyn_cast_or_null<clang::BinaryOperator>(each);
                if (op && op->isAssignmentOp() && is_kept_stream(op->getLHS()))
                    refuse(op, "a FILE gets another value in the loop of the safe point");
                if (op && op->isAssignmentOp() && is_persistent(op->getLHS()) &&
                    is_kept(op->getLHS()->IgnoreParenImpCasts()))
                    refuse(op, "a persistent request, or what leads to one, gets another value in "
                               "the loop of the safe point: a successor has those that its "
                               "initialisation makes");
                if (op && op->isAssignmentOp() && is_kept_handle(op->getLHS()))
                    refuse(op, "a handle of MPI gets another value in the loop of the safe point");
                if (const auto *cast = dyn_cast_or_null<clang::CastExpr>(each))
                    look_at_new(cast);
                if (const auto *declaration = dyn_cast_or_null<clang::DeclStmt>(each))
                    for (const auto *decl : declaration->decls())
                        if (const auto *variable = dyn_cast<clang::VarDecl>(decl);
                            variable && !variable->hasGlobalStorage() &&
                            is_kept_variable(variable)) {
                            look_at_initial(declaration, variable, variable->getInit());
                            look_at_length(declaration, variable);
                        }
            });
        };
        look(*cycle_.in, cycle_.statement);
        for (const auto &[in, call] : calls_.calls_below(*cycle_.in, cycle_.statement))
            for (const auto *callee : called_by(program_, call))
                called.insert(callee);
        for (const auto *one : calls_.closure(called))
            look(*one, one->decl->getBody());
        bool is_within = false;
        for (std::size_t i = 0; i + 1 < loop_.way.size(); i++) {
            const auto &[in, call] = loop_.way[i];
            const auto *callee = loop_.way[i + 1].in->decl;
            is_within |= in == cycle_.in;
            in_ = in;
            for (unsigned n = 0; is_within && n < callee->getNumParams(); n++)
                look_at_initial(call, callee->getParamDecl(n),
                                n < call->getNumArgs() ? call->getArg(n) : nullptr);
        }
    }

    bool is_kept_stream(const clang::Expr *object) const
    {
        object = object->IgnoreParenCasts();
        const auto type = layouts::element_of(in_->context(), object->getType());
        const auto key = key_of_object(object);
        if (resources::is_stream(type))
            return is_kept(object) && (key.empty() || opened_.streams().count(key));
        return is_kept(object) && has_stream(type);
    }

    bool may_be_standard(const clang::Expr *stream) const
    {
        const auto key = key_of_object(stream->IgnoreParenCasts());
        if (key.empty() || opened_.streams().count(key))
            return true;
        const auto *reference = dyn_cast<clang::DeclRefExpr>(stream->IgnoreParenCasts());
        const auto name = reference ? reference->getDecl()->getName() : "";
        return (name == "stdout" || name == "stderr") && !program_.globals().count(name.str());
    }

    bool has_stream(clang::QualType type) const
    {
        return has_field(type, [this](const clang::FieldDecl *member) {
            return opened_.streams().count(program::key(member)) > 0;
        });
    }

    bool is_persistent(const clang::Expr *object) const
    {
        return opened_.persistent().count(resources::base_of(*in_, object, nullptr)) > 0;
    }

    static bool is_handle(clang::QualType type)
    {
        const auto name = layouts::opaque(type);
        return !name.empty() && name != "MPI_Request";
    }

    bool has_handle(clang::QualType type) const
    {
        return has_field(type, [this](const clang::FieldDecl *member) {
            return is_handle(layouts::element_of(member->getASTContext(), member->getType())) ||
                   opened_.persistent().count(program::key(member)) > 0;
        });
    }

    template <typename Is>
    bool has_field(clang::QualType type, Is is) const
    {
        const auto *record = program_.definition_of(type->getAsRecordDecl());
        return record && std::any_of(record->field_begin(), record->field_end(), [&](auto *member) {
                   return is(member) ||
                          has_field(layouts::element_of(record->getASTContext(), member->getType()),
                                    is);
               });
    }

    /* A block that is allocated in the loop has no FILE in a successor, or the one of another. */
    void look_at_new(const clang::CastExpr *cast)
    {
        const auto to = cast->getType()->isPointerType() ? cast->getType()->getPointeeType()
                                                         : clang::QualType();
        if (cast->getCastKind() == clang::CK_BitCast && !to.isNull() && has_stream(to) &&
            !in_->context().hasSameUnqualifiedType(to,
                                                   cast->getSubExpr()->getType()->getPointeeType()))
            refuse(cast, "memory with a FILE in it is made in the loop of the safe point");
    }

    /* Of memory that is written as a whole, what is in it is not looked at. */
    void look_at_written(const clang::CallExpr *call, const clang::Expr *pointer)
    {
        const auto *object = pointer->IgnoreParenCasts();
        if (const auto *address = dyn_cast<clang::UnaryOperator>(object);
            address && address->getOpcode() == clang::UO_AddrOf)
            object = address->getSubExpr()->IgnoreParenCasts();
        else if (!object->getType()->isArrayType())
            object = nullptr;
        if (object && !is_kept(object))
            return;
        for (auto type : resources::pointees_of(pointer)) {
            type = layouts::element_of(in_->context(), type);
            if (resources::is_stream(type) || has_stream(type))
                refuse(call, "a FILE may get another value in the loop of the safe point");
            if (has_handle(type) ||
                (layouts::opaque(type) == "MPI_Request" && is_persistent(pointer)))
                refuse(call, "a handle of MPI may get another value in the loop of the safe point");
        }
    }

    void look_at_made(const clang::CallExpr *call)
    {
        const auto *callee = callee_of(call);
        const auto *known =
            callee && !program_.find(callee) ? find_known(callee->getNameAsString()) : nullptr;
        for (unsigned i = 0; known && i < call->getNumArgs(); i++) {
            const char letter = known->effect(i);
            if (letter == 'P')
                refuse(call, callee->getNameAsString() +
                                 "() in the loop of the safe point: persistent requests are made "
                                 "again by the initialisation of a successor, and by nothing else");
            if (std::string_view("obuUe").find(letter) != std::string_view::npos)
                look_at_written(call, call->getArg(i));
            if (letter == 'f' && may_be_standard(call->getArg(i)))
                refuse(call, callee->getNameAsString() +
                                 "() in the loop of the safe point: a successor has the FILE open");
            if (letter != 'h' && letter != 'H')
                continue;
            const auto *argument = call->getArg(i)->IgnoreParenImpCasts();
            if (const auto *address = dyn_cast<clang::UnaryOperator>(argument))
                argument = address->getSubExpr()->IgnoreParenImpCasts();
            if (is_kept_handle(argument))
                refuse(call, callee->getNameAsString() +
                                 "() in the loop of the safe point: a successor's initialisation "
                                 "makes the handle only as it was at the first safe point");
        }
    }

    /* Not a local variable that is in scope only between two safe points. */
    bool is_kept_handle(const clang::Expr *object) const
    {
        object = object->IgnoreParenImpCasts();
        const auto type = layouts::element_of(in_->context(), object->getType());
        return (is_handle(type) || has_handle(type)) && is_kept(object);
    }

    /* What the loop gives @variable first, again and again, must be the same each time. */
    void look_at_initial(const clang::Stmt *at, const clang::VarDecl *variable,
                         const clang::Expr *value)
    {
        const auto type = layouts::element_of(in_->context(), variable->getType());
        const bool is_stream =
            (resources::is_stream(type) && opened_.streams().count(program::key(variable))) ||
            has_stream(type);
        const bool is_request = opened_.persistent().count(program::key(variable)) > 0;
        if ((is_stream || is_handle(type) || has_handle(type) || is_request) && !is_fixed(value))
            refuse(at, std::string(is_stream ? "a FILE" : "a handle of MPI") +
                           " may begin with another value each time in the loop of the safe point");
    }

    /* A successor declares it as it was the first time. */
    void look_at_length(const clang::Stmt *at, const clang::VarDecl *variable)
    {
        for (const auto *array = in_->context().getAsVariableArrayType(variable->getType()); array;
             array = in_->context().getAsVariableArrayType(array->getElementType()))
            if (array->getSizeExpr() && !is_fixed(array->getSizeExpr()))
                return refuse(at, "'" + variable->getNameAsString() +
                                      "', which is declared again and again in the loop of the "
                                      "safe point, may have another length each time");
    }

    bool is_fixed(const clang::Expr *value) const
    {
        value = value ? value->IgnoreParenCasts() : nullptr;
        if (!value || isa<clang::ImplicitValueInitExpr>(value))
            return true;
        if (const auto *list = dyn_cast<clang::InitListExpr>(value))
            return std::all_of(list->begin(), list->end(), [this](const clang::Stmt *each) {
                return is_fixed(dyn_cast_or_null<clang::Expr>(each));
            });
        if (const auto *address = dyn_cast<clang::UnaryOperator>(value);
            address && address->getOpcode() == clang::UO_AddrOf)
            if (const auto *reference = dyn_cast<clang::DeclRefExpr>(address->getSubExpr()))
                if (const auto *variable = dyn_cast<clang::VarDecl>(reference->getDecl()))
                    return variable->hasGlobalStorage();
        if (cycle_.is_of_gotos && !is_name_or_number(value))
            return false;
        return now_.is_fixed(*in_, value, iteration::span::all_iterations);
    }

    /* Of a variable or its member; whether that gets another value is looked at by itself. */
    static bool is_name_or_number(const clang::Expr *value)
    {
        while (const auto *member = dyn_cast<clang::MemberExpr>(value))
            value = member->getBase()->IgnoreParenCasts();
        return isa<clang::DeclRefExpr, clang::IntegerLiteral>(value);
    }

    bool is_kept(const clang::Expr *object) const
    {
        const auto *reference = dyn_cast<clang::DeclRefExpr>(object);
        const auto *variable = reference ? dyn_cast<clang::VarDecl>(reference->getDecl()) : nullptr;
        return !variable || variable->hasGlobalStorage() || is_kept_variable(variable);
    }

    bool is_kept_variable(const clang::VarDecl *variable) const
    {
        for (const auto &[in, call] : loop_.way)
            if (in == in_) {
                const auto &sources = in->context().getSourceManager();
                return sources.isBeforeInTranslationUnit(
                    variable->getLocation(),
                    (call ? static_cast<const clang::Stmt *>(call) : body_of(loop_.statement))
                        ->getBeginLoc());
            }
        return false;
    }

    const program &program_;
    const call_graph &calls_;
    const accesses &used_;
    const resources &opened_;
    const loop &loop_;
    const iteration now_;
    const region cycle_;
    const std::set<const clang::CallExpr *> before_; /* the first safe point */
    const function *in_ = nullptr;
    bool takes_addresses_ = false; /* of the program's memory, for datatypes */
    std::set<const function *> reached_;
    std::set<const clang::CallExpr *> later_;
    findings found_;
};

} // namespace

findings find_obstacles(const program &all, const call_graph &calls, const accesses &used,
                        const resources &opened, const loop &at)
{
    return search(all, calls, used, opened, at).find();
}

} // namespace zc::instrument
