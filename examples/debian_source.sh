# shellcheck shell=bash
# Sourced by the build scripts of examples that take their source from Debian.

# download PACKAGE VERSION FOLDER: unpack the distribution's source to FOLDER/source, by apt with lists of its own: the
# machine's sources stay as they are.
download() {
    local package=$1 version=$2 folder=$3 apt=$3/apt archive
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$apt/parts/source.sources"
    local options=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts"
        -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update
    (cd "$folder" && apt-get "${options[@]}" source --download-only "$package" >/dev/null)
    archive=$(compgen -G "$folder/${package}_$version.*.orig.tar.xz") ||
        { echo "this distribution has no source of $package $version" >&2; return 1; }
    mkdir -p "$folder/source"
    tar -xJf "$archive" -C "$folder/source" --strip-components=1
}
