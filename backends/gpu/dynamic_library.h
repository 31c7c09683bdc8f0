#pragma once
// A shared library opened at run time: GPU drivers and vendor libraries are never linked.

#include <initializer_list>
#include <string>

namespace rbee::gpu {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  // Opens the first of `names` that exists. `override_variable`: an environment variable that may
  // name another file.
  DynamicLibrary(const char* override_variable, std::initializer_list<const char*> names);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  // The name under which the file was opened.
  const std::string& name() const { return name_; }
  // Why nothing could be opened, in one line; empty if something was.
  const std::string& reason() const { return reason_; }
  // Null if the library has no such symbol.
  void* find(const char* symbol) const;

  // Sets `function` to the symbol; appends the symbol's name to missing() if there is none.
  template <typename Function>
  void bind(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(find(symbol));
    if (function == nullptr) add_missing(symbol);
  }
  // Names of the symbols that bind() did not find, separated by ", ".
  const std::string& missing() const { return missing_; }

 private:
  void add_missing(const char* symbol);

  void* handle_ = nullptr;
  std::string name_;
  std::string reason_;
  std::string missing_;
};

}  // namespace rbee::gpu
