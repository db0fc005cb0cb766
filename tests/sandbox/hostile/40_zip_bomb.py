# Gives back an archive that unpacks to 200 MiB.
#
# /// expect
# seen = { size = "100000..400000" }
# collect = ["bomb.zip", "sparse"]
# files = ["bomb.zip", "sparse"]
# ///
import os
import zipfile

from probe import report

with (
    zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
    archive.open("bomb", "w") as inside,
):
    for _ in range(200):
        inside.write(bytes(1 << 20))
with open("sparse", "wb") as file:
    file.truncate(16 << 20)
report(size=os.path.getsize("bomb.zip"))
