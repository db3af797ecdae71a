"""What softmax regression is made of: equations of the mode, curves, leave-one-out."""
