# Homebrew's formula for rbee from a checkout of this repository; no Mac has run it. `brew` builds it from an archive
# that packaging/homebrew/make_archive.sh makes of the commit, and puts the archive's path and sum in here.
class Rbee < Formula
  desc "Inference workers for language models and pictures"
  url "file://@ARCHIVE@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["Apache-2.0", "MIT"]

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on arch: :arm64
  depends_on "fmt"
  depends_on "giflib"
  depends_on "icu4c"
  depends_on "jpeg-turbo"
  depends_on "libpng"
  depends_on macos: :ventura
  depends_on "openssl@3"
  depends_on "pcre2"
  depends_on "spdlog"
  depends_on "webp"
  depends_on "zstd"

  uses_from_macos "curl"
  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DRBEE_TESTS=OFF", "-DRBEE_PCH=OFF",
           "-DRBEE_DEBIAN_SHARE=#{buildpath}/debian/share", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rbee --version")
    assert_match "cpu:0", shell_output("#{bin}/rbee devices")
  end
end
