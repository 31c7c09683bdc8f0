#pragma once
// Fields and options of AUTOMATIC1111 that change its pictures but have no effect here.

#include <span>
#include <vector>

#include "server/wire/json_object.h"
#include "server/wire/lax_fields.h"

namespace rbee::server {

struct AbsentField {
  const char* name;
  const char* without;  // JSON: a list of its neutral values
  const char* instead = "this worker does not do it";
};

std::span<const AbsentField> absent_fields();  // of txt2img and img2img
std::span<const AbsentField> absent_of_img2img();
std::span<const AbsentField> absent_of_enlarging();
std::span<const AbsentField> absent_of_hires();
std::span<const AbsentField> absent_of_controls();  // a unit of the ControlNet extension
std::span<const AbsentField> absent_options();      // override_settings, /sdapi/v1/options
// Options that override_settings may set; /sdapi/v1/options would have to keep them.
std::span<const AbsentField> fixed_options();

// Notes those with another value: to ignore one would give another picture than the client
// requested.
void refuse_absent(ObjectReader& reader, std::span<const AbsentField> absent);

// Those whose value is a number or a boolean.
std::vector<LaxField> lax_fields(std::span<const AbsentField> options);

}  // namespace rbee::server
