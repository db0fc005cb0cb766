# Prints markup that a page might run.
#
# /// expect
# text = ["<script>", "]]>"]
# ///
print("<script>document.title = 1</script>]]><img src=x onerror=alert(1)>")
