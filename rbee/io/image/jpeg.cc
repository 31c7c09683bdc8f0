#include "rbee/io/image/jpeg.h"

#include <csetjmp>
#include <cstdio>
// Needs <cstdio> before it.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "rbee/core/cancel.h"
#include "rbee/core/error.h"
#include "rbee/io/image/exif.h"

namespace rbee::io {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr std::string_view kExifName{"Exif\0\0", 6};

// Encoders write about ten. Each passes over the whole picture, whatever few bytes it has.
constexpr int kMaxScans = 100;

// libjpeg leaves its functions by longjmp. Nothing with a destructor lives in a frame between
// guarded() and libjpeg.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf resume;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void leave(j_common_ptr common) {
  auto* failure = reinterpret_cast<Failure*>(common->err);
  common->err->format_message(common, failure->message.data());
  std::longjmp(failure->resume, 1);
}

// A warning means that the data is damaged; libjpeg would go on with grey.
void leave_at_warning(j_common_ptr common, int level) {
  if (level < 0) leave(common);
}

void no_output(j_common_ptr /*common*/) {}

void leave_at_many_scans(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMaxScans) return;
  auto* failure = reinterpret_cast<Failure*>(common->err);
  std::snprintf(failure->message.data(), failure->message.size(), "it has more than %d scans",
                kMaxScans);
  std::longjmp(failure->resume, 1);
}

struct JpegDecoder {
  JpegDecoder() {
    state.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = leave;
    failure.manager.emit_message = leave_at_warning;
    failure.manager.output_message = no_output;
    failure.message.fill('\0');
    progress.progress_monitor = leave_at_many_scans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&state); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  jpeg_decompress_struct state{};
  Failure failure{};
  jpeg_progress_mgr progress{};
};

struct Encoder {
  Encoder() {
    state.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = leave;
    failure.manager.output_message = no_output;
    failure.message.fill('\0');
  }
  ~Encoder() {
    jpeg_destroy_compress(&state);
    std::free(written);
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  jpeg_compress_struct state{};
  Failure failure{};
  unsigned char* written = nullptr;  // libjpeg's, by malloc
  unsigned long size = 0;
};

struct JpegPicture {
  const Pixels& pixels;
  int quality;
  std::string_view marker;
};

// Runs `step`; false when libjpeg failed within.
template <typename Coder>
bool guarded(Coder& coder, void (*step)(Coder&, void*), void* argument) {
  if (setjmp(coder.failure.resume) != 0) return false;
  step(coder, argument);
  return true;
}

void write_picture(Encoder& encoder, void* argument) {
  const auto& picture = *static_cast<const JpegPicture*>(argument);
  jpeg_compress_struct& state = encoder.state;
  jpeg_create_compress(&state);
  jpeg_mem_dest(&state, &encoder.written, &encoder.size);
  state.image_width = static_cast<JDIMENSION>(picture.pixels.width);
  state.image_height = static_cast<JDIMENSION>(picture.pixels.height);
  state.input_components = 3;
  state.in_color_space = JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, picture.quality, TRUE);
  constexpr int kWholeColours = 90;
  if (picture.quality >= kWholeColours) {
    state.comp_info[0].h_samp_factor = state.comp_info[0].v_samp_factor = 1;
  }
  jpeg_start_compress(&state, TRUE);
  if (!picture.marker.empty()) {
    jpeg_write_marker(&state, kExifMarker, reinterpret_cast<const JOCTET*>(picture.marker.data()),
                      static_cast<unsigned>(picture.marker.size()));
  }
  const size_t stride = size_t{state.image_width} * 3;
  while (state.next_scanline < state.image_height) {
    check_cancelled("image");
    // libjpeg's interface has no const; it only reads.
    auto* row = const_cast<uint8_t*>(picture.pixels.values.data()) + state.next_scanline * stride;
    JSAMPROW rows[] = {row};
    jpeg_write_scanlines(&state, rows, 1);
  }
  jpeg_finish_compress(&state);
}

void read_header(JpegDecoder& decoder, void* bytes) {
  const auto& data = *static_cast<const std::string_view*>(bytes);
  jpeg_create_decompress(&decoder.state);
  decoder.state.progress = &decoder.progress;
  jpeg_mem_src(&decoder.state, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  constexpr unsigned kLongest = 0xFFFF;
  jpeg_save_markers(&decoder.state, kExifMarker, kLongest);
  jpeg_read_header(&decoder.state, TRUE);
}

constexpr int32_t kInks = 4;  // cyan, magenta, yellow, black

void start(JpegDecoder& decoder, void* /*unused*/) {
  const J_COLOR_SPACE stored = decoder.state.jpeg_color_space;
  const bool inks = stored == JCS_CMYK || stored == JCS_YCCK;
  decoder.state.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&decoder.state);
}

void read_rows(JpegDecoder& decoder, void* pixels) {
  auto* row = static_cast<uint8_t*>(pixels);
  const size_t stride =
      size_t{decoder.state.output_width} * static_cast<size_t>(decoder.state.output_components);
  while (decoder.state.output_scanline < decoder.state.output_height) {
    check_cancelled("image");
    JSAMPROW rows[] = {row};
    jpeg_read_scanlines(&decoder.state, rows, 1);
    row += stride;
  }
  jpeg_finish_decompress(&decoder.state);
}

// Files have the paper that an ink leaves free, as Adobe's programs write it; what two inks leave
// free is the product. Rounded as Pillow does.
void colour_inks(Pixels& pixels) {
  const size_t count = pixels.values.size() / kInks;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = pixels.values.data() + i * kInks;
    const uint32_t black = from[3];
    for (size_t c = 0; c < 3; ++c) {
      const uint32_t product = (UINT8_MAX - uint32_t{from[c]}) * black + 128;
      const uint32_t covered = (product + (product >> 8)) >> 8;
      pixels.values[i * 3 + c] = static_cast<uint8_t>(black - covered);
    }
  }
  pixels.values.resize(count * 3);
  pixels.channels = 3;
}

void open(JpegDecoder& decoder, std::string_view bytes, std::string_view field) {
  const bool opened = guarded(decoder, read_header, &bytes);
  check(opened, field, "it is no JPEG file that can be read: ", decoder.failure.message.data());
}

int orientation_of(const JpegDecoder& decoder) {
  for (const auto* marker = decoder.state.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    const int found = marker->marker == kExifMarker ? exif_orientation(data) : 1;
    if (found != 1) return found;
  }
  return 1;
}

// What the first segment of a kind holds that begins with `name`, in front of the first scan;
// empty: there is none.
std::string_view segment_of(std::string_view bytes, char kind, std::string_view name) {
  constexpr char kScan = '\xda';
  bytes.remove_prefix(std::min<size_t>(2, bytes.size()));  // the mark of the file's start
  while (bytes.size() > 4 && bytes[0] == '\xff' && bytes[1] != kScan) {
    const size_t length =
        size_t{static_cast<uint8_t>(bytes[2])} << 8 | static_cast<uint8_t>(bytes[3]);
    if (length < 2 || length + 2 > bytes.size()) break;
    const std::string_view data = bytes.substr(4, length - 2);
    if (bytes[1] == kind && data.starts_with(name)) return data;
    bytes.remove_prefix(length + 2);
  }
  return {};
}

}  // namespace

ImageHeader read_jpeg_header(std::string_view bytes, std::string_view field) {
  JpegDecoder decoder;
  open(decoder, bytes, field);
  auto width = static_cast<int32_t>(decoder.state.image_width);
  auto height = static_cast<int32_t>(decoder.state.image_height);
  if (swaps_sides(orientation_of(decoder))) std::swap(width, height);
  return {ImageFormat::jpeg, width, height};
}

Pixels decode_jpeg(std::string_view bytes, std::string_view field) {
  JpegDecoder decoder;
  open(decoder, bytes, field);
  const int orientation = orientation_of(decoder);  // markers go with the end of decoding
  const bool started = guarded(decoder, start, nullptr);
  check(started, field, "it is no JPEG file that can be read: ", decoder.failure.message.data());
  Pixels out{.width = static_cast<int32_t>(decoder.state.output_width),
             .height = static_cast<int32_t>(decoder.state.output_height),
             .channels = decoder.state.output_components,
             .values = {}};
  out.values.resize(size_t{decoder.state.output_width} * decoder.state.output_height *
                    static_cast<size_t>(out.channels));
  const bool read = guarded(decoder, read_rows, out.values.data());
  check(read, field, "it is no whole JPEG file: ", decoder.failure.message.data());
  if (out.channels == kInks) colour_inks(out);
  return upright(std::move(out), orientation);
}

bool fits_jpeg(std::string_view exif) {
  constexpr size_t kLongest = 0xFFFF - 2;  // a segment counts its two bytes of length
  return kExifName.size() + exif.size() <= kLongest;
}

std::string encode_jpeg(const Pixels& pixels, int32_t quality, std::string_view exif) {
  const bool told = !exif.empty() && fits_jpeg(exif);
  const std::string marker = told ? std::string(kExifName) + std::string(exif) : std::string();
  JpegPicture picture{pixels, quality, marker};
  Encoder encoder;
  if (!guarded(encoder, write_picture, &picture)) {
    fail(Code::internal, "jpeg", encoder.failure.message.data());
  }
  return {reinterpret_cast<const char*>(encoder.written), encoder.size};
}

std::string_view jpeg_exif(std::string_view bytes) {
  return segment_of(bytes, '\xe1', kExifName);
}

std::string_view jpeg_comment(std::string_view bytes) {
  return segment_of(bytes, '\xfe', "");
}

}  // namespace rbee::io
